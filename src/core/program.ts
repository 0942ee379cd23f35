import { readFileSync } from 'node:fs'
import { findPackageJSON } from 'node:module'
import path from 'node:path'
import { getAsset, getAssetKeys, isSea } from 'node:sea'
import { fileURLToPath } from 'node:url'
import { Worker, type WorkerOptions } from 'node:worker_threads'

// The only module that locates the program: sources (a checkout), a few files in dist/ (a package), or assets of a single
// executable, named as in a package.
const here = fileURLToPath(import.meta.url)

/** Whether this process is the single executable. */
export const IS_EXECUTABLE: boolean = isSea()

function packageRoot(): string {
  if (IS_EXECUTABLE) return path.dirname(process.execPath)
  const manifest = findPackageJSON(import.meta.url)
  if (manifest === undefined) throw new Error(`there is no package.json above ${here}`)
  return path.dirname(manifest)
}

/** The folder of this package's package.json, or of the executable. */
export const PACKAGE_ROOT: string = packageRoot()

/** `.ts` for sources, `.cjs` for what `scripts/build.ts` makes of them. */
const EXTENSION = path.extname(here)
const CODE = EXTENSION === '.ts' ? 'src' : 'dist'

/** Reads a file of the package by its path below package.json. Throws an error with code `ENOENT` if there is none. */
export function readProgramFile(name: string): Buffer {
  if (!IS_EXECUTABLE) return readFileSync(path.join(PACKAGE_ROOT, name))
  if (!getAssetKeys().includes(name))
    throw Object.assign(new Error(`no file ${name} in this executable`), { code: 'ENOENT' })
  return Buffer.from(getAsset(name))
}

/** Reads a static file of the program by its path below `src/`. Throws an error with code `ENOENT` if there is none. */
export const readStaticFile = (name: `inspect/page/${string}`): Buffer => readProgramFile(`${CODE}/${name}`)

/** Paths of all files below a folder of the package. Only for the executable. */
export const embeddedFiles = (folder: string): string[] =>
  getAssetKeys().filter((name) => name.startsWith(`${folder}/`))

/** Starts a thread with an entry module, by its name below `src/` without extension. */
export function startThread(
  name: 'compose/proxy/config-thread' | 'registry/parse-worker',
  options: WorkerOptions,
): Worker {
  const file = `${CODE}/${name}${EXTENSION}`
  if (!IS_EXECUTABLE) return new Worker(path.join(PACKAGE_ROOT, file), options)
  // The loader of the executable runs the entry that its last argument names.
  return new Worker(getAsset('loader.cjs', 'utf8'), { ...options, eval: true, argv: [file] })
}
