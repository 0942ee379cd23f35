export { Bridge } from './bridge.ts'
export { Output } from './output.ts'
export { createSseEndpoint } from './sse-endpoint.ts'
