/** A red pixel as PNG, base64. */
export const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=='

/** An empty WAV file (header, no samples), base64. */
export const WAV = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA='

/** The wait between two notifications that the conformance suite asks for, in milliseconds. */
export const STEP_MS = 50

/** A text block, the usual result of a tool. */
export const text = (value: string) => ({ content: [{ type: 'text' as const, text: value }] })
