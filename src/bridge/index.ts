export { Bridge } from './bridge.ts'
export { Output } from './output.ts'
export { createSseEndpoint } from './sse-endpoint.ts'
export type { PageOpener } from './url-elicitation.ts'
