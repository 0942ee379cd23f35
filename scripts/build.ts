import { cpSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { PAGE_LIBRARIES } from '../src/inspect/page-libraries.ts'
import { type InputOptions, type OutputChunk, rolldown, type RolldownOutput } from 'rolldown'

const { fingerprint } = createRequire(import.meta.url)('../bin/built.cjs') as {
  readonly fingerprint: (file: string) => readonly [size: number, mtimeMs: number, digest: string]
}

// Builds dist/ (or the folder that is named), which runs under plain Node 24 with production dependencies only: few files
// instead of hundreds, because finding and reading each takes longer than running it (docs/adr/0091). CommonJS, because an
// ES module that imports one of Node's own reads each of its exports, and initializes unused ones.
const root = path.join(import.meta.dirname, '..')
const target = path.resolve(root, process.argv[2] ?? 'dist')
/** Takes the place of `target` when it is whole: programs may start meanwhile, and another may make the same. */
const folder = `${target}.${process.pid}`

/** Packages that not every process needs: each is an entry of its own in dist/packages/, read when it is first used. */
const LATE = [
  '@aws-sdk/client-sts',
  '@aws-sdk/credential-providers',
  '@bufbuild/cel',
  '@bufbuild/cel/ext',
  '@bufbuild/protobuf/wkt',
  '@bufbuild/re2',
  '@smithy/core/config',
  'ioredis',
  'jose',
]
const LATE_PREFIX = 'late:'
const lateFile = (name: string): string => `packages/${name.replaceAll('/', '-')}`
/** Separate files because a thread starts with them; by their names below src/. */
const THREADS = ['compose/proxy/config-thread', 'registry/parse-worker']
/** Files that are served unchanged. */
const PAGES = ['inspect/page']

/** The name of the package that a file or specifier belongs to; undefined for ours. */
function packageOf(name: string): string | undefined {
  const text = path.isAbsolute(name) ? /.*\/node_modules\/(.*)/.exec(name)?.[1] : name
  return text === undefined || text.startsWith('.') ? undefined : /^(@[^/]+\/)?[^/]+/.exec(text)?.[0]
}

const inputOptions = (input: Record<string, string>): InputOptions => ({
  input,
  cwd: root,
  platform: 'node',
  // A slow machine must not fail the build: `onLog` throws for warnings.
  checks: { bundlerTimings: false },
  plugins: [
    {
      name: 'required where it is needed',
      transform: plainRequire,
      // Among themselves these packages share modules; everything else loads the entry.
      resolveId: (name, importer) =>
        importer === undefined || packageOf(importer) !== undefined || !LATE.includes(name)
          ? undefined
          : { id: LATE_PREFIX + name, external: true },
      renderChunk: (code, { fileName }) =>
        code.replaceAll(/\brequire\("late:([^"]+)"\)/g, (_, name: string) => {
          const file = path.posix.relative(path.posix.dirname(fileName), `${lateFile(name)}.cjs`)
          return `require("${file.startsWith('.') ? file : `./${file}`}")`
        }),
    },
  ],
  onLog(level, log) {
    if (level === 'warn') throw new Error(log.message)
  },
})
/** Calls of `createRequire`, and imports of late packages, as the `require` that the bundler knows; they stay lazy. */
function plainRequire(code: string): string {
  return code
    .replaceAll(/\bload\('([^']+)'\)/g, "require('$1')")
    .replaceAll(/\bimport\('([^']+)'\)/g, (whole, name: string) =>
      LATE.includes(name) ? `Promise.resolve().then(() => require('${name}'))` : whole,
    )
}

const chunksOf = ({ output }: RolldownOutput): OutputChunk[] => output.filter((part) => part.type === 'chunk')

/** Every module that is loaded together with the one that is named. */
async function loadedWith(name: string): Promise<ReadonlySet<string>> {
  await using build = await rolldown(inputOptions({ entry: name }))
  const chunks = chunksOf(await build.generate({ format: 'cjs' }))
  const wanted = new Set(['entry.js'])
  for (const file of wanted)
    chunks.find(({ fileName }) => fileName === file)?.imports.forEach((next) => wanted.add(next))
  return new Set(chunks.filter(({ fileName }) => wanted.has(fileName)).flatMap(({ moduleIds }) => moduleIds))
}

/** `together`: modules that go into one file, because finding each takes longer than what is not needed in it. */
async function bundle(
  input: Record<string, string>,
  together: ReadonlySet<string> = new Set(),
): Promise<OutputChunk[]> {
  await using build = await rolldown(inputOptions(input))
  return chunksOf(
    await build.write({
      dir: folder,
      format: 'cjs',
      entryFileNames: '[name].cjs',
      chunkFileNames: 'chunks/[name]-[hash].cjs',
      keepNames: true,
      // The text stays in memory beside what is compiled of it, and its sum is taken at each start: comments are in the
      // sources and licences in a file of their own.
      comments: false,
      codeSplitting: { groups: [{ name: 'proxy', test: (name) => together.has(name) }] },
    }),
  )
}

/** The licences of what is in the bundle and is not ours, each with the package that it came with. */
function licences(chunks: readonly OutputChunk[]): string {
  const files = chunks.flatMap(({ modules }) => Object.keys(modules)).filter((file) => path.isAbsolute(file))
  const names = new Set(files.map(packageOf).filter((name) => name !== undefined))
  const texts = [...names].sort().map((name) => {
    const home = path.join(root, 'node_modules', name)
    const { version, license } = JSON.parse(readFileSync(path.join(home, 'package.json'), 'utf8')) as {
      version: string
      license: string
    }
    const file = readdirSync(home).find((entry) => /^(licen[cs]e|copying)/i.test(entry))
    const text = file === undefined ? 'The package has no license file.' : readFileSync(path.join(home, file), 'utf8')
    return `${name} ${version} (${license})\n\n${text.trim()}\n`
  })
  return `dist/ holds parts of these packages.\n\n${texts.join(`\n${'-'.repeat(80)}\n\n`)}`
}

/** Every file that this is made of: `bin/extauth.cjs` runs a checkout's dist/ while they are the same. */
function sources(): Record<string, readonly [size: number, mtimeMs: number, digest: string]> {
  const names = ['src', 'lab'].flatMap((name) =>
    readdirSync(path.join(root, name), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => path.relative(root, path.join(entry.parentPath, entry.name))),
  )
  const all = [...names, 'scripts/build.ts', 'package-lock.json']
  return Object.fromEntries(all.map((name) => [name, fingerprint(path.join(root, name))]))
}

// Before anything is read: what changes meanwhile must not look as if it were part of it.
const made = sources()
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
mkdirSync(folder, { recursive: true })
const chunks = [...(await bundle({ main: 'src/main.ts' }, await loadedWith('src/cli/proxy.ts')))]
chunks.push(...(await bundle(Object.fromEntries(LATE.map((name) => [lateFile(name), name])))))
for (const name of THREADS) chunks.push(...(await bundle({ [name]: `src/${name}.ts` })))
for (const name of PAGES)
  cpSync(path.join(root, 'src', name), path.join(folder, name), {
    recursive: true,
    // Declarations are for the compiler.
    filter: (file) => !file.endsWith('.ts'),
  })
for (const [name, file] of Object.entries(PAGE_LIBRARIES)) {
  mkdirSync(path.join(folder, 'inspect/page/lib'), { recursive: true })
  cpSync(path.join(root, 'node_modules', file), path.join(folder, 'inspect/page', name))
}
writeFileSync(path.join(folder, 'THIRD-PARTY-LICENSES'), licences(chunks))
writeFileSync(path.join(folder, 'sources.json'), JSON.stringify(made))
rmSync(target, { recursive: true, force: true })
renameSync(folder, target)
