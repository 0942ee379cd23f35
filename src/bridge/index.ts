export { Bridge } from './bridge.ts'
export { Output } from './output.ts'
