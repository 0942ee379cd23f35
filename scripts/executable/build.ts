import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import os from 'node:os'
import path from 'node:path'
import { rolldown } from 'rolldown'

const root = path.join(import.meta.dirname, '../..')

export const ARCHITECTURES = ['x64', 'arm64'] as const
export type Architecture = (typeof ARCHITECTURES)[number]

/** Files of the package that the executable contains. */
const ASSETS = ['package.json', 'config/init', 'config/lab', 'dist']
/** Node options of the executable: a bounded young generation (docs/adr/0341) and no debugger on SIGUSR1. */
const NODE_OPTIONS = ['--max-semi-space-size=8', '--disable-sigusr1']
/** Where Node finds what postject writes (nodejs.org, Single executable applications). */
const SECTION = 'NODE_SEA_BLOB'
const FUSE = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2'

/** Writes the single executable for Linux to `file`, from the dist/ that is there. Throws if this Node is not the bundled version. */
export async function buildExecutable(architecture: Architecture, file: string): Promise<void> {
  const scratch = mkdtempSync(path.join(os.tmpdir(), 'extauth-executable-'))
  try {
    const base = nodeFor(architecture, scratch)
    const loader = path.join(scratch, 'loader.cjs')
    await using bundle = await rolldown({ input: path.join(import.meta.dirname, 'loader.ts'), platform: 'node' })
    await bundle.write({ file: loader, format: 'cjs', comments: false })
    const config = path.join(scratch, 'config.json')
    const blob = path.join(scratch, 'blob')
    writeFileSync(
      config,
      JSON.stringify({
        // A relative path, because it is part of the executable.
        main: path.basename(loader),
        output: blob,
        disableExperimentalSEAWarning: true,
        execArgv: NODE_OPTIONS,
        assets: {
          'loader.cjs': loader,
          ...Object.fromEntries(assetNames().map((name) => [name, path.join(root, name)])),
        },
      }),
    )
    execFileSync(process.execPath, ['--experimental-sea-config', config], {
      cwd: scratch,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    // A new file, because node_modules may be hard links.
    rmSync(file, { force: true })
    copyFileSync(base, file)
    chmodSync(file, 0o755)
    const postject = createRequire(import.meta.url).resolve('postject/dist/cli.js')
    // Its ELF library warns about sections of Node that it leaves alone.
    execFileSync(process.execPath, [postject, file, SECTION, blob, '--sentinel-fuse', FUSE], { stdio: 'pipe' })
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

function assetNames(): string[] {
  const below = (name: string): string[] =>
    readdirSync(path.join(root, name), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && entry.name !== 'sources.json')
      .map((entry) => path.relative(root, path.join(entry.parentPath, entry.name)))
  return ASSETS.flatMap((name) => (name.includes('.') ? [name] : below(name))).toSorted()
}

/** The license of Node, which the executables contain. */
export function nodeLicense(): string {
  const folder = ARCHITECTURES.map((name) => path.join(root, `node_modules/node-linux-${name}`)).find((name) =>
    existsSync(name),
  )
  if (folder === undefined) throw new Error('node_modules has no Node: install with optional dependencies on Linux')
  return readFileSync(path.join(folder, 'LICENSE'), 'utf8')
}

interface Lock {
  readonly packages: Readonly<Record<string, { readonly version: string; readonly integrity: string }>>
}

/** The node program of an architecture: of the installed package, else of the same package as the lock file describes it. */
function nodeFor(architecture: Architecture, scratch: string): string {
  const name = `node-linux-${architecture}`
  const installed = path.join(root, 'node_modules', name, 'bin/node')
  const { packages } = JSON.parse(readFileSync(path.join(root, 'package-lock.json'), 'utf8')) as Lock
  const locked = packages[`node_modules/${name}`]
  if (locked === undefined) throw new Error(`package-lock.json does not contain ${name}`)
  // The format of the embedded data belongs to a version of Node.
  if (process.versions.node !== locked.version)
    throw new Error(`the executable contains Node ${locked.version}; this is ${process.version}. Run it with npm run`)
  if (existsSync(installed)) return installed
  const pack = ['pack', `${name}@${locked.version}`, '--silent', '--pack-destination', scratch]
  const tarball = path.join(scratch, execFileSync('npm', pack, { encoding: 'utf8' }).trim())
  const digest = `sha512-${createHash('sha512').update(readFileSync(tarball)).digest('base64')}`
  if (digest !== locked.integrity)
    throw new Error(`${name}: the digest is ${digest}, package-lock.json expects ${locked.integrity}`)
  execFileSync('tar', ['-xzf', tarball, '-C', scratch, 'package/bin/node'])
  return path.join(scratch, 'package/bin/node')
}
