import { connectThrough } from '../../../lab/cli/lab-pages.ts'

/** The user of a browser that opens the link in the last argument, connects the account, and closes it. */
const [, , user = '', link = ''] = process.argv
await connectThrough(link, { user }, (reason) => {
  throw new Error(reason)
})
