import { spawn } from 'node:child_process'
import type { Io } from '../compose/index.ts'

/** How a system opens an address in the browser of the user. */
const OPENERS: Readonly<Record<string, readonly string[]>> = {
  darwin: ['open'],
  win32: ['rundll32', 'url.dll,FileProtocolHandler'],
}

/**
 * Shows an address to the user: in the browser (the program in `BROWSER`, else that of the system), and as a line on
 * standard error, for where there is none. Nothing of this process is left to what is started.
 */
export function openBrowser(url: string, io: Pick<Io, 'stderr' | 'env'>): void {
  io.stderr(`Open this address in a browser on this machine to log in:\n\n  ${url}\n\n`)
  const { BROWSER: wanted } = io.env
  const [command = 'xdg-open', ...args] =
    wanted !== undefined && wanted !== '' ? [wanted] : (OPENERS[process.platform] ?? ['xdg-open'])
  const child = spawn(command, [...args, url], { detached: true, stdio: 'ignore' })
  // Without a browser the line above is what there is.
  child.once('error', () => undefined)
  child.unref()
}
