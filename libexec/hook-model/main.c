/*
 * hook-model: a model server for `hitl-prompt hook --check`, on the loopback interface. It speaks
 * as much of Anthropic Messages, OpenAI Responses and Chat Completions, and Gemini as a coding
 * agent needs to make one call of its shell tool.
 *
 * usage: hook-model COMMAND MARK
 *   stdout: its port; then, a line each, as they happen: "called", the agent was asked to run
 * COMMAND; "denied", the agent returned MARK to the model; "ended", it returned something else
 *
 * It serves one connection at a time and ends with its standard input.
 */
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <amp/base/buf.h>

enum { REQUEST_MOST = 32 << 20, READ_SIZE = 64 << 10, WAIT_SECONDS = 5 };

/* The APIs, with the events of a text and of a call. \1: the text or the tool, \2: the input as
 * JSON, \3: the same in a string. */
#define EVENT(type, rest) "event: " type "\ndata: {\"type\":\"" type "\"" rest "}\n\n"
#define RESPONSE(status, output)                                                                   \
    ",\"response\":{\"id\":\"r\",\"object\":\"response\",\"status\":\"" status                     \
    "\",\"output\":[" output "],\"usage\":{\"input_tokens\":1,\"output_tokens\":1,"                \
    "\"total_tokens\":2,\"input_tokens_details\":{\"cached_tokens\":0},"                           \
    "\"output_tokens_details\":{\"reasoning_tokens\":0}}}"
#define ITEM_SAID                                                                                  \
    "{\"type\":\"message\",\"id\":\"m\",\"role\":\"assistant\",\"status\":\"completed\","          \
    "\"content\":[{\"type\":\"output_text\",\"text\":\"\1\",\"annotations\":[]}]}"
#define ITEM_CALL                                                                                  \
    "{\"type\":\"function_call\",\"id\":\"f\",\"call_id\":\"call_1\",\"name\":\"\1\","             \
    "\"arguments\":\"\3\",\"status\":\"completed\"}"
#define RESPONSES(item)                                                                            \
    EVENT("response.created", RESPONSE("in_progress", ""))                                         \
    EVENT("response.output_item.added", ",\"output_index\":0,\"item\":" item)                      \
    EVENT("response.output_item.done", ",\"output_index\":0,\"item\":" item)                       \
    EVENT("response.completed", RESPONSE("completed", item))
#define MESSAGE(block, delta, reason)                                                              \
    EVENT("message_start",                                                                         \
          ",\"message\":{\"id\":\"m\",\"type\":\"message\",\"role\":\"assistant\","                \
          "\"model\":\"m\",\"content\":[],\"stop_reason\":null,"                                   \
          "\"stop_sequence\":null,"                                                                \
          "\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}")                                   \
    EVENT("content_block_start", ",\"index\":0,\"content_block\":{" block "}")                     \
    EVENT("content_block_delta", ",\"index\":0,\"delta\":{" delta "}")                             \
    EVENT("content_block_stop", ",\"index\":0")                                                    \
    EVENT("message_delta", ",\"delta\":{\"stop_reason\":\"" reason                                 \
                           "\",\"stop_sequence\":null},\"usage\":{\"output_tokens\":1}")           \
    EVENT("message_stop", "")
#define CHUNK(delta, reason)                                                                       \
    "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\","      \
    "\"choices\":[{\"index\":0,\"delta\":{" delta "},\"finish_reason\":" reason "}]}\n\n"
#define CONTENT(part)                                                                              \
    "{\"candidates\":[{\"index\":0,\"content\":{\"role\":\"model\",\"parts\":[{" part "}]},"       \
    "\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"promptTokenCount\":1,"                       \
    "\"candidatesTokenCount\":1,\"totalTokenCount\":2}}"

static const struct api {
    const char *path; /* a part of it */
    bool events;      /* or one JSON text */
    const char *text, *call;
} apis[] = {
    {"/messages", true,
     MESSAGE("\"type\":\"text\",\"text\":\"\"", "\"type\":\"text_delta\",\"text\":\"\1\"",
             "end_turn"),
     MESSAGE("\"type\":\"tool_use\",\"id\":\"toolu_1\",\"name\":\"\1\",\"input\":{}",
             "\"type\":\"input_json_delta\",\"partial_json\":\"\3\"", "tool_use")},
    {"/responses", true, RESPONSES(ITEM_SAID), RESPONSES(ITEM_CALL)},
    {"/chat/completions", true,
     CHUNK("\"role\":\"assistant\",\"content\":\"\1\"", "null")
         CHUNK("", "\"stop\"") "data: [DONE]\n\n",
     CHUNK("\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"index\":0,\"id\":\"call_1\","
           "\"type\":\"function\",\"function\":{\"name\":\"\1\",\"arguments\":\"\3\"}}]",
           "null") CHUNK("", "\"tool_calls\"") "data: [DONE]\n\n"},
    {":streamGenerateContent", true, "data: " CONTENT("\"text\":\"\1\"") "\r\n\r\n",
     "data: " CONTENT("\"functionCall\":{\"name\":\"\1\",\"args\":\2}") "\r\n\r\n"},
    {":generateContent", false, CONTENT("\"text\":\"\1\""), NULL},
};

/* The shell tools and their input; the command is a JSON string. */
static const struct shell {
    const char *name, *input;
} shells[] = {
    {"Bash", "{\"command\":\1,\"description\":\"the check of the hook\"}"},
    {"exec_command", "{\"cmd\":\1}"},
    {"shell_command", "{\"command\":\1}"},
    {"run_shell_command",
     "{\"command\":\1,\"description\":\"the check of the hook\",\"is_background\":false}"},
    {"bash", "{\"command\":\1,\"description\":\"the check of the hook\"}"},
};

/* The shell tool that the request offers, or NULL: it is about something else. */
static const struct shell *shell_find(struct amp_span body)
{
    char name[64];
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++) {
        snprintf(name, sizeof name, "\"name\":\"%s\"", shells[i].name);
        if (memmem(body.p, body.n, name, strlen(name)))
            return &shells[i];
    }
    return NULL;
}

/* The body from the result of our call on, or nothing. JSON of a program has no line ends. */
static struct amp_span result_find(struct amp_span body)
{
    static const char *const marks[] = {"\"tool_use_id\":\"toolu_1", "\"function_call_output\"",
                                        "\"tool_call_id\":\"call_1", "\"functionResponse\""};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        const char *at = memmem(body.p, body.n, marks[i], strlen(marks[i]));
        if (at)
            return (struct amp_span){at, (size_t)(body.p + body.n - at)};
    }
    return (struct amp_span){body.p, 0};
}

/* Appends the text as the inside of a JSON string; it has no control characters. */
static int text_quote(struct amp_buf *out, const char *text, struct amp_error *err)
{
    for (; *text; text++)
        if ((strchr("\"\\", *text) && amp_buf_add(out, "\\", 1, err) < 0) ||
            amp_buf_add(out, text, 1, err) < 0)
            return -1;
    return 0;
}

/* Appends the text with its parts in the places \\1, \\2 and \\3. */
static int text_fill(struct amp_buf *out, const char *text, const char *const parts[3],
                     struct amp_error *err)
{
    for (; *text; text++) {
        const char *part = *text >= 1 && *text <= 3 ? parts[*text - 1] : NULL;
        if ((part ? amp_buf_str(out, part, err) : amp_buf_add(out, text, 1, err)) < 0)
            return -1;
    }
    return 0;
}

static int call_compose(const struct api *api, const struct shell *shell, const char *command,
                        struct amp_buf *out, struct amp_error *err)
{
    AMP_BUF struct amp_buf word = {0}, input = {0}, quoted = {0};
    amp_buf_init(&word, READ_SIZE);
    amp_buf_init(&input, READ_SIZE);
    amp_buf_init(&quoted, READ_SIZE);
    if (amp_buf_str(&word, "\"", err) < 0 || text_quote(&word, command, err) < 0 ||
        amp_buf_str(&word, "\"", err) < 0 ||
        text_fill(&input, shell->input, (const char *[]){word.data, NULL, NULL}, err) < 0 ||
        text_quote(&quoted, input.data, err) < 0)
        return -1;
    return text_fill(out, api->call, (const char *[]){shell->name, input.data, quoted.data}, err);
}

/* The answer to a request; 404 for another path. */
static int answer(struct amp_span head, struct amp_span body, const char *command, const char *mark,
                  struct amp_buf *out, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    amp_buf_init(&text, READ_SIZE);
    const char *line = memchr(head.p, '\n', head.n);
    size_t n = line ? (size_t)(line - head.p) : head.n, i = 0;
    while (i < sizeof apis / sizeof *apis && !memmem(head.p, n, apis[i].path, strlen(apis[i].path)))
        i++;
    if (i == sizeof apis / sizeof *apis || memmem(head.p, n, "count_tokens", 12) ||
        strncmp(head.p, "POST ", 5) != 0)
        return amp_buf_str(out,
                           "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n"
                           "Content-Type: application/json\r\nConnection: close\r\n\r\n{}",
                           err);
    const struct shell *shell = apis[i].call ? shell_find(body) : NULL;
    bool denied = memmem(body.p, body.n, mark, strlen(mark));
    struct amp_span result = result_find(body);
    if (shell && denied)
        puts("denied");
    else if (shell && result.n)
        printf("ended %.*s\n", AMP_CLIP(result, 400));
    else if (shell)
        puts("called");
    fflush(stdout);
    int rc = shell && !denied && !result.n
                 ? call_compose(&apis[i], shell, command, &text, err)
                 : text_fill(&text, apis[i].text, (const char *[]){"done", NULL, NULL}, err);
    return rc < 0 ? -1
                  : amp_buf_fmt(out, err,
                                "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
                                "Connection: close\r\n\r\n%s",
                                apis[i].events ? "text/event-stream" : "application/json", text.len,
                                text.data);
}

/* The length that the head gives, 0 without one. */
static size_t length_find(struct amp_span head)
{
    static const char name[] = "\ncontent-length:";
    for (size_t i = 0; i + sizeof name < head.n; i++)
        if (strncasecmp(head.p + i, name, sizeof name - 1) == 0)
            return strtoul(head.p + i + sizeof name - 1, NULL, 10);
    return 0;
}

/* Reads a request and answers it. A connection that fails is the agent's to repeat. */
static void connection_serve(int fd, const char *command, const char *mark)
{
    AMP_BUF struct amp_buf in = {0}, out = {0};
    struct timeval wait = {.tv_sec = WAIT_SECONDS};
    const char *end = NULL;
    size_t head = 0, most = 0;
    amp_buf_init(&in, REQUEST_MOST);
    amp_buf_init(&out, READ_SIZE);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    while (!end || in.len < most) {
        if (amp_buf_reserve(&in, READ_SIZE, NULL) < 0)
            return;
        ssize_t got = read(fd, in.data + in.len, READ_SIZE);
        if (got <= 0)
            return;
        in.len += (size_t)got;
        if (!end && (end = memmem(in.data, in.len, "\r\n\r\n", 4))) {
            head = (size_t)(end - in.data) + 4;
            most = head + length_find((struct amp_span){in.data, head});
        }
    }
    if (answer((struct amp_span){in.data, head}, (struct amp_span){in.data + head, most - head},
               command, mark, &out, NULL) < 0)
        return;
    for (size_t at = 0; at < out.len;) {
        ssize_t n = send(fd, out.data + at, out.len - at, MSG_NOSIGNAL);
        if (n <= 0)
            return;
        at += (size_t)n;
    }
    shutdown(fd, SHUT_WR);
}

int main(int argc, char **argv)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (argc != 3)
        return 64;
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) < 0 || listen(fd, 128) < 0 ||
        getsockname(fd, (struct sockaddr *)&at, &n) < 0) {
        perror("hook-model");
        return 69;
    }
    printf("%d\n", ntohs(at.sin_port));
    fflush(stdout);
    for (;;) {
        struct pollfd ready[2] = {{.fd = fd, .events = POLLIN}, {.fd = 0, .events = POLLIN}};
        if (poll(ready, 2, -1) < 0 || ready[1].revents)
            return 0;
        int peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
        if (peer < 0)
            continue;
        connection_serve(peer, argv[1], argv[2]);
        close(peer);
    }
}
