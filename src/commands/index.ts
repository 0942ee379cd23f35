export { main } from './main.ts'
export { EXIT, processIo } from './io.ts'
export type { Io } from './io.ts'
