export { createAuthorizer, type AuthorizerOptions } from './authorizer.ts'
export { type BackendMemory, createProtocolMemory, type ProtocolMemory } from './protocol-memory.ts'
export { readMessage, readRequest, UNKNOWN_TASK } from './read-request.ts'
export { compileRules, type RuleContext, type Rules } from './rules.ts'
