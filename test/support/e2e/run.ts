import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { runProxy, type RunProxyOptions, type RunningProxy } from '../../../src/compose/proxy/process.ts'
import { type RecordedLog, recordLog } from './lab.ts'

export { freePort } from '../../../lab/index.ts'

export interface RunningTestProxy extends RunningProxy {
  readonly directory: string
  readonly log: RecordedLog
  /** Writes a file of the configuration (or below `secrets/`). */
  write(name: string, text: string | Buffer): Promise<void>
}

type Files = Readonly<Record<string, string | Buffer>>

/** A folder of configuration files, gone after `remove`. */
export async function configFolder(files: Files) {
  const directory = await mkdtemp(path.join(os.tmpdir(), 'extauth-e2e-'))
  const write = async (name: string, text: string | Buffer): Promise<void> => {
    await mkdir(path.dirname(path.join(directory, name)), { recursive: true })
    await writeFile(path.join(directory, name), text)
  }
  for (const [name, text] of Object.entries(files)) await write(name, text)
  return { directory, write, remove: () => rm(directory, { recursive: true, force: true }) }
}

/** Runs the real proxy with these files on free ports. */
export async function run(files: Files, options: Partial<RunProxyOptions> = {}): Promise<RunningTestProxy> {
  const folder = await configFolder(files)
  const log = recordLog()
  try {
    const proxy = await runProxy({
      configPaths: [folder.directory],
      listen: '127.0.0.1:0',
      admin: '127.0.0.1:0',
      secretsDirectory: path.join(folder.directory, 'secrets'),
      env: {},
      log,
      drainGraceMs: 500,
      ...options,
    })
    const close = async (): Promise<void> => {
      await proxy.close()
      await folder.remove()
    }
    return { ...proxy, directory: folder.directory, write: folder.write, log, close }
  } catch (error) {
    await folder.remove()
    throw error
  }
}

/** An MCPExternalAuthConfig. */
export const authConfig = (name: string, spec: object): string =>
  JSON.stringify({ apiVersion: 'extauth.dev/v1alpha1', kind: 'MCPExternalAuthConfig', metadata: { name }, spec })

/** A ProxyConfig with these routes. */
export const proxyConfig = (spec: object): string =>
  JSON.stringify({ apiVersion: 'extauth.dev/v1alpha1', kind: 'ProxyConfig', metadata: { name: 'test' }, spec })
