import { readFileSync } from 'node:fs'

/** Whether a process exists; an exited process stays until it is reaped (Z). Linux. */
export function isThere(pid: number): boolean {
  try {
    return !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ')
  } catch {
    return false
  }
}
