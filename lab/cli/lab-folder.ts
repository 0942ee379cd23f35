import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { labConfig } from '../../src/cli/index.ts'

/** config/lab itself where every address is the one written there and nothing is added, else a copy with the others. */
export async function configFor(
  addresses: Readonly<Record<string, string>>,
  isExtended: boolean,
): Promise<{ readonly directory: string; close(): Promise<void> }> {
  if (!isExtended && Object.entries(addresses).every(([written, wanted]) => written === wanted)) {
    return { directory: labConfig(), close: () => Promise.resolve() }
  }
  const directory = await mkdtemp(path.join(os.tmpdir(), 'extauth-lab-'))
  await cp(labConfig(), directory, { recursive: true })
  for (const file of await readdir(directory)) {
    if (!file.endsWith('.yaml')) continue
    const text = await readFile(path.join(directory, file), 'utf8')
    // A single pass, so that an inserted address is not replaced again.
    const replaced = text.replace(/127\.0\.0\.1:\d+/g, (written) => addresses[written] ?? written)
    await writeFile(path.join(directory, file), replaced)
  }
  return { directory, close: () => rm(directory, { recursive: true, force: true }) }
}
