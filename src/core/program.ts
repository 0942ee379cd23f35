import { findPackageJSON } from 'node:module'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

// The only file that asks where it lies: the program runs as sources (a checkout) and as a few files in dist/ (a package).
const here = fileURLToPath(import.meta.url)
const manifest = findPackageJSON(import.meta.url)
if (manifest === undefined) throw new Error(`there is no package.json above ${here}`)

/** The folder of this package's package.json: a checkout's top, or where an installed package lies. */
export const PACKAGE_ROOT: string = path.dirname(manifest)

/** `.ts` for sources, `.cjs` for what `scripts/build.ts` makes of them. */
const EXTENSION = path.extname(here)
const CODE = path.join(PACKAGE_ROOT, EXTENSION === '.ts' ? 'src' : 'dist')

/** A folder of files that are served as they are, by its name below `src/`. */
export const programFolder = (name: 'inspect/page'): string => path.join(CODE, name)

/** A module that a thread starts with, by its name below `src/` and without its ending. */
export const programModule = (name: 'compose/proxy/config-thread' | 'registry/parse-worker'): string =>
  path.join(CODE, `${name}${EXTENSION}`)
