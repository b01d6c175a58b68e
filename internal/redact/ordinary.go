package redact

import "strings"

// vocabulary are the longer words that logs, results and messages are written
// with. A key that is part of one is no secret, and without it they could not be read.
const vocabulary = `
accepted adaptations agent-instructions agent/inbox/spliced answerCommand answered approval approval/asked approval/decided
arguments ask_user_question assistant assistant/message attached base_url blockedReason cacheReadTokens canceled cancelled capabilities
childSessionId compaction/end compaction/prune compaction/start compaction/summary complete completed contentBlocks
contextWindow continued create_goal createdAt decision deepseek deepseek-chat deepseek-v4-flash deepseek-v4-pro delegate delegationDepth
description durationMs exit_plan_mode exitCode finalResponse finishReason full-access get_goal goal/change ignorable initialize
inputTokens inserted interrupted job_kill job_list job_output keepInbox llm/retry llm/retry-started max-steps max-tokens maxRounds maxTimeout maxTokens
messageId multi_select next-step next-turn objective observed outputTokens parameters parentCallId parentSession parentSessionId permission
permission/preset plan-review plan/mode priceDate properties protocolVersion provider question questions questions/answer
questions/attachWait questions/detach questions/list questions/request questions/respond questions/settled questions/wait
questions/waitEnded questions/withdraw read-only reasoning reasoning_content reasoningEffort reasoningTokens remainingMs removedCount request/context
request/header revision rootCallId run_code seedLength selected serverInfo session session/cancel session/close session/end-seed
session/list session/prompt session/read session/settings session/steer session/title sessionId sessions shutdown step/end
step/start subagent subagent-settled subagent/descriptor subCallId surfaceOp temperature timeout_ms todo/write todo_write tool_calls tool-call
tool/call tool/ptc-dispatch tool/ptc-dispatch-start tool/result toolCallId turn/end turn/start update_goal updatedAt user/message
user-question-reply withdrawn workspace-write
`

// ordinary tells whether replacing the key would do harm and hide nothing: it is
// short, or a word of the product itself.
func ordinary(key string) bool { return len(key) < MinLength || strings.Contains(vocabulary, key) }
