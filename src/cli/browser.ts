import { spawn } from 'node:child_process'
import type { Io } from '../compose/index.ts'

/** Command that opens a URL in the default browser, by platform. Elsewhere: `xdg-open`. */
const OPENERS: Readonly<Record<string, readonly string[]>> = {
  darwin: ['open'],
  win32: ['rundll32', 'url.dll,FileProtocolHandler'],
}

/**
 * Opens a URL in the user's browser (`BROWSER`, else the system's) and prints it on standard error for machines
 * without one. The browser runs detached, with no open file of this process.
 */
export function openBrowser(url: string, purpose: string, io: Pick<Io, 'stderr' | 'env'>): void {
  io.stderr(`Open this address in a browser on this machine to ${purpose}:\n\n  ${url}\n\n`)
  const { BROWSER: wanted } = io.env
  const [command = 'xdg-open', ...args] =
    wanted !== undefined && wanted !== '' ? [wanted] : (OPENERS[process.platform] ?? ['xdg-open'])
  const child = spawn(command, [...args, url], { detached: true, stdio: 'ignore' })
  // The printed address is the fallback.
  child.once('error', () => undefined)
  child.unref()
}
