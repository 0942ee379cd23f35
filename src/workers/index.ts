export { channelToSupervisor, ioOfWorker, isWorker, leave, onConnection } from './fork.ts'
export { runWorkers } from './supervisor.ts'
export { runWorker } from './worker.ts'
