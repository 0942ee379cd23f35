import { execFile } from 'node:child_process'
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

// A type of external auth that was forgotten somewhere must not compile: the compiler itself is asked.
const root = path.join(import.meta.dirname, '../..')
const TYPES = 'src/resources/auth-types.ts'
const RECORD = `{ ...unauthenticatedRecord, fetches: true }`
let project: string

beforeAll(async () => {
  project = await mkdtemp(path.join(tmpdir(), 'new-type-'))
  await cp(path.join(root, 'src'), path.join(project, 'src'), { recursive: true })
  await symlink(path.join(root, 'node_modules'), path.join(project, 'node_modules'))
  await cp(path.join(root, 'package.json'), path.join(project, 'package.json'))
  const { compilerOptions } = JSON.parse(await readFile(path.join(root, 'tsconfig.json'), 'utf8')) as object & {
    compilerOptions: object
  }
  const tsconfig = {
    compilerOptions,
    files: ['src/obtain/sources.ts', 'src/resources/index.ts'],
    include: ['src/**/*.d.ts'],
  }
  await writeFile(path.join(project, 'tsconfig.json'), JSON.stringify(tsconfig))
})
afterAll(() => rm(project, { recursive: true, force: true }))

/** What the compiler says of the product after these replacements in the list and table of types, a line each. */
async function compileWith(...replacements: readonly (readonly [from: string, to: string])[]): Promise<string[]> {
  let text = await readFile(path.join(root, TYPES), 'utf8')
  for (const [from, to] of replacements) {
    expect(text).toContain(from)
    text = text.replace(from, to)
  }
  await writeFile(path.join(project, TYPES), text)
  const compiler = path.join(root, 'node_modules/typescript/bin/tsc')
  const { stdout } = await promisify(execFile)(process.execPath, [compiler, '--pretty', 'false', '-p', project], {
    cwd: project,
  }).catch((error: { stdout: string }) => error)
  return stdout.split('\n').filter((line) => line.includes('error TS'))
}

const LISTED = ["  'upstreamInject',\n]", "  'upstreamInject',\n  'gcpSts',\n]"] as const
const recorded = (record: string) =>
  [
    '  upstreamInject: upstreamInjectRecord,\n',
    `  upstreamInject: upstreamInjectRecord,\n  gcpSts: ${record},\n`,
  ] as const

describe('a new type of external auth', { timeout: 120_000 }, () => {
  it('is refused without a record', async () => {
    const errors = await compileWith(LISTED)
    expect(errors.join('\n')).toMatch(/auth-types\.ts.*'gcpSts'/)
  })

  it('is refused with a record that leaves something out', async () => {
    const errors = await compileWith(LISTED, recorded(`(({ sets, ...rest }) => rest)(${RECORD})`))
    expect(errors.join('\n')).toMatch(/auth-types\.ts.*'sets'/)
  })

  it('is refused without a source where it runs on routes', async () => {
    const errors = await compileWith(LISTED, recorded(RECORD))
    expect(errors.join('\n')).toMatch(/sources\.ts.*'gcpSts'/)
  })

  it('compiles with its record, and needs no source where it runs elsewhere', async () => {
    const server = `{ ...unauthenticatedRecord, runsOn: 'server' as const }`
    expect(await compileWith(LISTED, recorded(server))).toEqual([])
  })
})
