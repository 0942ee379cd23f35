import { readFileSync } from 'node:fs'

/** Whether a process is there; one that has ended stays as long as nobody asks how (Z). Linux. */
export function isThere(pid: number): boolean {
  try {
    return !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ')
  } catch {
    return false
  }
}
