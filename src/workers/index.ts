export { channelToSupervisor, leave, onConnection } from './fork.ts'
export { runWorkers } from './supervisor.ts'
export { runWorker } from './worker.ts'
