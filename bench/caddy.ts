import { accessSync, constants, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { freePort } from '../lab/free-port.ts'
import { type Running, startProcess } from './processes.ts'

/** Where Caddy is: `named` (throws when nothing can be run there), else the first on PATH; undefined when there is none. */
export function findCaddy(named: string | undefined): string | undefined {
  if (named === undefined)
    return (process.env['PATH'] ?? '')
      .split(path.delimiter)
      .map((directory) => path.join(directory, 'caddy'))
      .find(canRun)
  if (!canRun(named)) throw new Error(`${named} is no program`)
  return path.resolve(named)
}

/**
 * Starts Caddy as what it is compared for: a plain reverse proxy that sets one header, without its admin endpoint and
 * without an access log, which is its default.
 */
export async function startCaddy(program: string, backend: string): Promise<Running> {
  const port = await freePort()
  const directory = mkdtempSync(path.join(tmpdir(), 'caddy-bench-'))
  const config = path.join(directory, 'caddy.json')
  writeFileSync(config, JSON.stringify(configOf(port, new URL(backend).host)))
  const remove = (): void => rmSync(directory, { recursive: true, force: true })
  // Its files on disk are deleted with it.
  const env = { ...process.env, XDG_DATA_HOME: directory, XDG_CONFIG_HOME: directory }
  const running = await startProcess(['run', '--config', config], port, '', { env, program }).catch(
    (error: unknown) => {
      remove()
      throw error
    },
  )
  return {
    ...running,
    async stop() {
      await running.stop()
      remove()
    },
  }
}

const configOf = (port: number, backend: string): object => ({
  admin: { disabled: true, config: { persist: false } },
  logging: { logs: { default: { level: 'ERROR' } } },
  apps: {
    http: {
      servers: {
        bench: {
          listen: [`127.0.0.1:${port}`],
          automatic_https: { disable: true },
          routes: [
            {
              handle: [
                {
                  handler: 'reverse_proxy',
                  headers: { request: { set: { Authorization: ['Bearer a-token'] } } },
                  upstreams: [{ dial: backend }],
                },
              ],
            },
          ],
        },
      },
    },
  },
})

function canRun(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return statSync(file).isFile()
  } catch {
    return false
  }
}
