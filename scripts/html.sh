#!/bin/sh
# html.sh DIR VERSION: the manual pages and documents as linked HTML files in DIR, with an index and a search
# that need no server.
#
# mandoc makes the pages, cmark-gfm the documents; without cmark-gfm these are left out. The result depends on the
# sources only. A reference to a page or file that is not among them becomes plain text.
set -eu
export LC_ALL=C
out=$1
version=$2
src=scripts/html
command -v mandoc >/dev/null 2>&1 || {
  echo "html: mandoc is missing; apt-get install mandoc" >&2
  exit 69
}
rm -rf "$out"
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

escape() { sed 's/&/\&amp;/g; s/</\&lt;/g; s/>/\&gt;/g; s/"/\&quot;/g'; }

# names PAGE: the names under which the page is installed.
names() { sed -n '/^\.Sh NAME/,/^\.Nd/s/^\.Nm \([^ ]*\).*/\1/p' "$1"; }

# "NAME.SECTION.html FILE" of each name; "FILE TITLE" of each document.
for page in man/*.[157]; do
  for n in $(names "$page"); do
    echo "$n.${page##*.}.html ${page##*/}.html"
  done
done >"$work/links"
if command -v cmark-gfm >/dev/null 2>&1; then
  for doc in README.md CONTRIBUTING.md docs/*.md; do
    name=$(basename "$doc" .md)
    echo "$doc doc-$(echo "$name" | tr '[:upper:]' '[:lower:]').html"
  done >"$work/docs"
else
  echo "html: note: cmark-gfm is missing, so the documents are left out" >&2
  : >"$work/docs"
fi

# page FILE TITLE: the complete page around the body on standard input, with a table of its sections.
page() {
  # A heading on one line, for the table.
  awk '/<h[12][ >]/ && !/<\/h[12]>/ { line = $0; while ((getline more) > 0) { sub(/^ +/, "", more); line = line " " more
      if (more ~ /<\/h[12]>/) break }; print line; next } { print }' >"$work/body"
  {
    sed -e "s|@TITLE@|$2|g" -e "s|@VERSION@|$version|g" "$src/head.html"
    # Only the sections of a long page are worth a table.
    if [ "$(grep -c '<h[12][^>]* id="' "$work/body")" -gt 4 ]; then
      echo '<nav class="toc"><details open><summary>On this page</summary><ul>'
      sed -n 's|.*<h\([12]\)[^>]* id="\([^"]*\)">\(.*\)</h[12]>.*|<li class="l\1"><a href="#\2">\3</a></li>|p' \
        "$work/body" | sed -e 's|<a class="permalink"[^>]*>\(.*\)</a></a>|\1</a>|'
      echo '</ul></details></nav>'
    fi
    echo '<main>'
    cat "$work/body"
    echo '</main></div></body></html>'
  } >"$out/$1"
}

# Links to other pages by the file that has the name; what does not exist is text.
links() {
  awk -v list="$work/links" '
    BEGIN { while ((getline line <list) > 0) { split(line, w, " "); file[w[1]] = w[2] } }
    { text = text $0 "\n" }
    END {
      while (match(text, /<a class="Xr" href="[^"]*">[^<]*<\/a>/)) {
        link = substr(text, RSTART, RLENGTH)
        printf "%s", substr(text, 1, RSTART - 1)
        text = substr(text, RSTART + RLENGTH)
        href = link; sub(/.*href="/, "", href); sub(/".*/, "", href)
        label = link; sub(/^[^>]*>/, "", label); sub(/<.*/, "", label)
        if (href in file) printf "<a class=\"Xr\" href=\"%s\">%s</a>", file[href], label
        else printf "<span class=\"Xr\">%s</span>", label
      }
      printf "%s", text
    }'
}

# index FILE NAME DESCRIPTION: the page in the search index: its headings and terms, and all its words.
index() {
  awk -v file="$1" -v name="$2" -v about="$3" '
    function plain(s) {
      gsub(/<[^>]*>/, "", s)
      gsub(/&quot;/, "\"", s); gsub(/&lt;/, "<", s); gsub(/&gt;/, ">", s); gsub(/&#x00A0;|&nbsp;/, " ", s)
      gsub(/[ \n\t]+/, " ", s); sub(/^ /, "", s); sub(/ $/, "", s)
      return s
    }
    function quote(s) {
      gsub(/\\/, "\\\\", s); gsub(/"/, "\\\"", s)
      gsub(/&amp;/, "\\&", s)
      while (match(s, /&#x[0-9A-Fa-f]+;/))
        s = substr(s, 1, RSTART - 1) "\\u{" substr(s, RSTART + 3, RLENGTH - 4) "}" substr(s, RSTART + RLENGTH)
      return "\"" s "\""
    }
    { text = text $0 "\n" }
    END {
      printf "{f:%s,n:%s,d:%s,a:[", quote(file), quote(name), quote(about)
      rest = text
      while (match(rest, /<(dt|h1|h2|h3)( class="[^"]*")? id="[^"]*"/)) {
        tag = substr(rest, RSTART, RLENGTH)
        rest = substr(rest, RSTART + RLENGTH + 1)
        id = tag; sub(/.* id="/, "", id); sub(/"$/, "", id)
        end = tag ~ /^<dt/ ? index(rest, "</dt>") : match(rest, /<\/h[123]>/)
        label = plain(substr(rest, 1, end - 1))
        if (label ~ /^(NAME|SYNOPSIS|DESCRIPTION|OPTIONS|EXAMPLES|ENVIRONMENT|FILES|EXIT STATUS|SEE ALSO)$/ || label == "") continue
        printf "%s[%s,%s]", comma, quote(id), quote(label)
        comma = ","
      }
      text = tolower(plain(text))
      gsub(/&[^;]*;/, " ", text)
      n = split(text, w, /[^a-z0-9_.-]+/)
      printf "],w:\" "
      for (i = 1; i <= n; i++) {
        sub(/^[.-]+/, "", w[i]); sub(/[.-]+$/, "", w[i])
        if (length(w[i]) > 1 && !(w[i] in seen)) { seen[w[i]] = 1; printf "%s ", w[i] }
      }
      print "\"},"
    }' "$work/body"
}

cp "$src/style.css" "$src/search.js" "$out/"
echo 'var ampIndex = [' >"$work/index.js"
for section in 1 5 7; do
  case $section in
  1) title='Programs' ;;
  5) title='File formats' ;;
  7) title='Concepts and protocols' ;;
  esac
  echo "<h2 id=\"section-$section\">$title</h2><dl class=\"index\">" >>"$work/sections"
  for page in man/*."$section"; do
    [ -e "$page" ] || continue
    file=${page##*/}.html
    about=$(sed -n '/^\.Sh NAME/,/^\.Sh [^N]/s/^\.Nd //p' "$page" | sed 's/\\(aq/'"'"'/g; s/\\&//g' | escape)
    mandoc -T html -I os="amp-tools $version" -O fragment,man=%N.%S.html "$page" | links |
      page "$file" "${page##*/}"
    first=$(names "$page" | head -n 1)
    index "$file" "$(names "$page" | tr '\n' ' ' | sed 's/ $//; s/ /, /g')($section)" "$about" >>"$work/index.js"
    # A page of several verbs is in the list under each of its names.
    for n in $(names "$page"); do
      [ "$n" = "$first" ] && also='' || also=" class=\"also\""
      printf '%s <dt%s><a href="%s">%s</a>(%s)</dt><dd>%s</dd>\n' "$n" "$also" "$file" "$n" "$section" "$about"
    done
  done | cat >"$work/list"
  sort "$work/list" | sed 's/^[^ ]* //' >>"$work/sections"
  echo '</dl>' >>"$work/sections"
done

if [ -s "$work/docs" ]; then
  echo '<h2 id="documents">Documents for contributors</h2><dl class="index">' >>"$work/sections"
  while read -r doc file; do
    title=$(sed -n 's/^# //p' "$doc" | head -n 1 | escape)
    # Links between the documents; headings get the ids that links to them use.
    cmark-gfm -e table "$doc" | awk -v dir="${doc%"${doc##*/}"}" -v list="$work/docs" '
      BEGIN { while ((getline line <list) > 0) { split(line, w, " "); file[w[1]] = w[2] } }
      function target(href,   path, part, at, n) {
        if (href ~ /^[a-z]+:/ || href ~ /^#/) return href
        at = index(href, "#")
        part = at ? substr(href, at) : ""
        path = at ? substr(href, 1, at - 1) : href
        path = dir path
        while (sub(/[^\/]+\/\.\.\//, "", path)) n++
        return path in file ? file[path] part : ""
      }
      {
        line = $0
        if (match(line, /^<h[1-6]>/)) {
          id = tolower(line); gsub(/<[^>]*>/, "", id); gsub(/[^a-z0-9 _-]/, "", id); gsub(/ /, "-", id)
          line = substr(line, 1, 3) " id=\"" id "\"" substr(line, 4)
        }
        done = ""
        while (match(line, /<a href="[^"]*">/)) {
          href = substr(line, RSTART + 9, RLENGTH - 11)
          done = done substr(line, 1, RSTART - 1)
          line = substr(line, RSTART + RLENGTH)
          to = target(href)
          if (to != "") { done = done "<a href=\"" to "\">"; continue }
          end = index(line, "</a>")
          if (end) line = "<span>" substr(line, 1, end - 1) "</span>" substr(line, end + 4)
        }
        print done line
      }' | page "$file" "$title"
    index "$file" "$title" "$doc" >>"$work/index.js"
    echo "<dt><a href=\"$file\">$title</a></dt><dd>$doc</dd>" >>"$work/sections"
  done <"$work/docs"
  echo '</dl>' >>"$work/sections"
fi
echo '];' >>"$work/index.js"
cp "$work/index.js" "$out/search-index.js"
{
  cat "$src/intro.html"
  cat "$work/sections"
} | page index.html 'Manual'
