export { Bridge, type BridgeOptions } from './bridge.ts'
export { Output } from './output.ts'
