import { mkdir, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { ConfigError } from '../../../../src/compose/config-error.ts'
import { ioOf } from '../../compose/io.ts'
import { runValidate } from '../../../../src/cli/validate.ts'
import { runProxy } from '../../../../src/compose/proxy/process.ts'
import { recordLog } from '../lab.ts'
import type { RunningTestProxy } from '../run.ts'
import { GOOD, type BrokenSetup } from './build.ts'

/** `line:column` of `needle`, as editors count. */
function placeOf(text: string, needle: string): string {
  const before = text.slice(0, text.indexOf(needle)).split('\n')
  return `${before.length}:${(before.at(-1)?.length ?? 0) + 1}`
}

type Where = (name: string) => string

async function put(files: BrokenSetup['files'], where: Where): Promise<void> {
  for (const [name, content] of Object.entries(files)) {
    await mkdir(path.dirname(where(name)), { recursive: true })
    await writeFile(where(name), content)
  }
}

/** Lines of problems. */
export interface Heard {
  readonly reload: readonly string[]
  readonly start: readonly string[]
  readonly validate: readonly string[]
  /** The one at the place where the setup is broken, without that place. */
  readonly line: string | undefined
}

/**
 * Breaks the configuration of a running proxy, and hears what a reload, a start and `validate` say. Files of `callers/` lie
 * beside the file of `--callers`.
 */
export async function hear(proxy: RunningTestProxy, setup: BrokenSetup, callers?: string): Promise<Heard> {
  const { directory } = proxy
  const where: Where = (name) =>
    name.startsWith('callers/') && callers !== undefined
      ? path.join(path.dirname(callers), name.slice('callers/'.length))
      : path.join(directory, name)
  await put(setup.files, where)
  try {
    const reloaded = await proxy.reload()
    const reload = reloaded.ok ? [] : reloaded.problems
    const [file, needle] = setup.at
    const place = `${where(file)}:${placeOf(String(setup.files[file]), needle)}  `
    return {
      reload,
      start: await start(directory, callers),
      validate: await validate(directory, callers),
      line: reload.find((one) => one.startsWith(place))?.slice(place.length),
    }
  } finally {
    for (const name of Object.keys(setup.files)) await rm(where(name))
    await put(GOOD, (name) => path.join(directory, name))
  }
}

async function start(directory: string, callers: string | undefined): Promise<readonly string[]> {
  try {
    const running = await runProxy({
      configPaths: [directory],
      secretsDirectory: path.join(directory, 'secrets'),
      listen: '127.0.0.1:0',
      admin: '127.0.0.1:0',
      ...(callers === undefined ? {} : { callers }),
      env: {},
      log: recordLog(),
    })
    await running.close()
    return ['it starts']
  } catch (error) {
    if (error instanceof ConfigError) return error.lines
    throw error
  }
}

async function validate(directory: string, callers: string | undefined): Promise<readonly string[]> {
  const { io, out: written } = ioOf()
  const options = callers === undefined ? [] : ['--callers', callers]
  const code = await runValidate([directory, '--secrets-dir', path.join(directory, 'secrets'), ...options], io)
  if (code !== 1) return [`exit code ${code}`]
  return written.stdout.split('\n').filter((line) => line !== '' && !/ {2}(warning|note): /.test(line))
}
