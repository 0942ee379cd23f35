export { inspectorOf, inspectorOptions } from './inspector-options.ts'
export { CLAIM, oneOf, PORT, ROUTE_PATH, SIGNED_DURATION, signedSeconds, TEXT, wholeNumber } from './option-values.ts'
export type { CommandSpec, Parsed } from './options.ts'
