import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'

const FIRST_VERSION = '/sys/fs/cgroup/memory'
const SECOND_VERSION = '/sys/fs/cgroup'

/** A control group that bounds the memory of what is started in it. */
export interface MemoryGroup {
  /** A program and its arguments that start what follows them in the group. */
  readonly through: readonly string[]
  /** Whether the kernel ended a process of it. */
  hasKilled(): boolean
  remove(): void
}

let made = 0

/**
 * Makes a control group with this limit; undefined where this user or system can't: the limit is then seen in what the
 * process had resident at most.
 */
export function memoryGroup(limitBytes: number): MemoryGroup | undefined {
  const isFirst = existsSync(path.join(FIRST_VERSION, 'memory.limit_in_bytes'))
  const folder = path.join(isFirst ? FIRST_VERSION : SECOND_VERSION, `extauth-test-${process.pid}-${made++}`)
  try {
    mkdirSync(folder)
    writeFileSync(path.join(folder, isFirst ? 'memory.limit_in_bytes' : 'memory.max'), String(limitBytes))
  } catch {
    if (existsSync(folder)) rmdirSync(folder)
    return undefined
  }
  const events = path.join(folder, isFirst ? 'memory.oom_control' : 'memory.events')
  return {
    through: ['sh', '-c', `echo $$ > ${folder}/cgroup.procs && exec "$@"`, 'sh'],
    hasKilled: () => !/^oom_kill 0$/m.test(readFileSync(events, 'utf8')),
    remove() {
      rmdirSync(folder)
    },
  }
}

/** The most that a process ever had resident, in bytes; Linux says so. */
export const mostResident = (pid: number | undefined): number =>
  Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024
