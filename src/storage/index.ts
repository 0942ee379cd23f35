export { createMemoryStore, type MemoryStoreOptions } from './memory.ts'
export * from './port.ts'
export { createSeal, type Opened, type Seal } from './seal.ts'
export { createSealingKeys } from './sealing-keys.ts'
