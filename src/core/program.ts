import { findPackageJSON } from 'node:module'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

// The only module that locates the program, which runs from sources (a checkout) or from a few files in dist/ (a
// package).
const here = fileURLToPath(import.meta.url)
const manifest = findPackageJSON(import.meta.url)
if (manifest === undefined) throw new Error(`there is no package.json above ${here}`)

/** The folder of this package's package.json. */
export const PACKAGE_ROOT: string = path.dirname(manifest)

/** `.ts` for sources, `.cjs` for what `scripts/build.ts` makes of them. */
const EXTENSION = path.extname(here)
const CODE = path.join(PACKAGE_ROOT, EXTENSION === '.ts' ? 'src' : 'dist')

/** A folder of static files, by its name below `src/`. */
export const programFolder = (name: 'inspect/page'): string => path.join(CODE, name)

/** Entry module of a thread, by its name below `src/` without extension. */
export const programModule = (name: 'compose/proxy/config-thread' | 'registry/parse-worker'): string =>
  path.join(CODE, `${name}${EXTENSION}`)
