import type { Browser, BrowserContextOptions, ConsoleMessage, Page } from 'playwright-core'

/** A page of the inspector, and everything in it that should not have happened. */
export interface OpenPage {
  readonly page: Page
  /** Errors on the console, exceptions, refused policies, dialogs; empty when all is well. */
  readonly troubles: readonly string[]
  readonly close: () => Promise<void>
}

/** Opens an address in a browser of its own; `allows` says which lines on the console belong to the test. */
export async function openPage(
  browser: Browser,
  url: string,
  options: BrowserContextOptions & { readonly allows?: RegExp } = {},
): Promise<OpenPage> {
  const { allows, ...context } = options
  const own = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...context })
  const page = await own.newPage()
  const troubles: string[] = []
  page.on('console', (message: ConsoleMessage) => {
    const text = `${message.type()}: ${message.text()}`
    if (/^(?:error|warning)/.test(text) && allows?.test(text) !== true) troubles.push(text)
  })
  page.on('pageerror', (error) => troubles.push(`exception: ${error.message}`))
  page.on('dialog', (dialog) => {
    troubles.push(`dialog: ${dialog.message()}`)
    dialog.dismiss().catch(() => undefined)
  })
  // Nothing may be asked from anywhere but the inspector.
  page.on('request', (request) => {
    if (new URL(request.url()).origin !== new URL(url).origin) troubles.push(`request to ${request.url()}`)
  })
  await page.goto(url)
  return { page, troubles, close: () => own.close() }
}
