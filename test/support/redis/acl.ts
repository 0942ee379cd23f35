import { readFileSync } from 'node:fs'

const page = readFileSync(new URL('../../../docs/redis.md', import.meta.url), 'utf8')

/** The rights of the product's user as docs/redis.md has them, in one line. */
export const APPLICATION_RULES = (/```acl\n(.*?)```/s.exec(page)?.[1] ?? '').trim().split(/\s+/).join(' ')
