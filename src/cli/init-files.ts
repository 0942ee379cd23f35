import { generateKeyPair, randomBytes } from 'node:crypto'
import { lstat, mkdir, open, readFile, rm, rmdir, stat } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { type AuthType, type FirstSecret, TYPE_RECORDS } from '../resources/index.ts'
import { combinedSchema } from '../load/publish/index.ts'
import { labConfig } from './lab-config.ts'
import { readProgramFile } from '../core/index.ts'

export interface InitFile {
  /** Path relative to the folder, with `/`. */
  readonly name: string
  readonly text: string
  /** Written with mode 0600. */
  readonly isSecret: boolean
}

const CONFIG = 'proxy.yaml'
const SCHEMA = 'schema/extauth.schema.json'

async function firstValue(secret: FirstSecret): Promise<string> {
  if (secret === 'random') return `${randomBytes(48).toString('base64')}\n`
  if (secret === 'signingKey') {
    const { privateKey } = await promisify(generateKeyPair)('ec', { namedCurve: 'P-256' })
    return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  }
  return readFile(path.join(labConfig(), 'secrets', secret.ofLab), 'utf8')
}

/**
 * Returns the files of a first configuration: the commented template of `config/init`, its secrets, the editor schema.
 */
export async function initFiles(type: AuthType): Promise<InitFile[]> {
  const template = readProgramFile(`config/init/${type}.yaml`).toString()
  const text = template.replaceAll('$schema=../generated/extauth.schema.json', `$schema=./${SCHEMA}`)
  const secrets = Object.entries(TYPE_RECORDS[type].init.secrets).map(async ([name, secret]) => ({
    name: `secrets/${name}`,
    text: await firstValue(secret),
    isSecret: true,
  }))
  return [
    { name: CONFIG, text, isSecret: false },
    // Keeps secrets out of version control wherever the folder is moved.
    { name: 'secrets/.gitignore', text: '*\n', isSecret: true },
    ...(await Promise.all(secrets)),
    { name: SCHEMA, text: `${JSON.stringify(combinedSchema())}\n`, isSecret: false },
  ]
}

/** A file exists already; nothing was written. */
export class FileExists extends Error {
  readonly path: string
  constructor(file: string) {
    super(`${file} exists already`)
    this.name = 'FileExists'
    this.path = file
  }
}

/**
 * Writes all files or none, never over an existing one. Secrets get mode 0600, in folders of 0700. Throws `FileExists`
 * or the file system's error, after deleting what it wrote.
 */
export async function writeNew(directory: string, files: readonly InitFile[]): Promise<void> {
  const undo: (() => Promise<unknown>)[] = []
  try {
    for (const above of await missingAbove(directory)) await makeFolder(above, 0o777, undo)
    await makeFolder(directory, 0o777, undo)
    for (const { name, text, isSecret } of files) {
      const file = path.join(directory, name)
      await makeFolders(directory, path.dirname(name), isSecret ? 0o700 : 0o777, undo)
      // Exclusive: never overwrites a new file and never follows a link.
      const handle = await open(file, 'wx', isSecret ? 0o600 : 0o666)
      undo.push(() => rm(file))
      try {
        await handle.writeFile(text)
      } finally {
        await handle.close()
      }
    }
  } catch (error) {
    for (const step of undo.toReversed()) await step().catch(() => undefined)
    const { code, path: file } = error as NodeJS.ErrnoException
    throw code === 'EEXIST' ? new FileExists(file ?? directory) : error
  }
}

/** Missing folders above this one, outermost first. */
async function missingAbove(directory: string): Promise<string[]> {
  const above = path.dirname(path.resolve(directory))
  try {
    await stat(above)
    return []
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    return [...(await missingAbove(above)), above]
  }
}

async function makeFolders(root: string, name: string, mode: number, undo: (() => Promise<unknown>)[]): Promise<void> {
  let at = root
  for (const part of name.split('/')) {
    at = path.join(at, part)
    await makeFolder(at, mode, undo)
  }
}

/** Creates a folder unless it exists. A link to a folder is accepted except for secrets. */
async function makeFolder(folder: string, mode: number, undo: (() => Promise<unknown>)[]): Promise<void> {
  try {
    await mkdir(folder, { mode })
    undo.push(() => rmdir(folder))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    const found = await lstat(folder)
    if (!found.isDirectory() && !(mode === 0o777 && found.isSymbolicLink())) throw error
  }
}
