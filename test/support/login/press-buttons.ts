import { clickThrough } from '../../../lab/cli/lab-pages.ts'

/** Acts as a user of the lab's pages, from the opened URL to the callback page. */
export async function pressButtons(start: string, user: string): Promise<number> {
  const url = new URL(start)
  const end = url.searchParams.get('redirect_uri') ?? ''
  const refuse = (reason: string): never => {
    throw new Error(reason)
  }
  const answer = await clickThrough(url, end, user, refuse)
  return (await fetch(`${end}?${answer.toString()}`)).status
}

const [, file, start] = process.argv
if (file === import.meta.filename && start !== undefined) await pressButtons(start, process.env['LAB_USER'] ?? 'alice')
