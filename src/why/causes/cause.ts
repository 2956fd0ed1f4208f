// What does `hawser why` say about one cause, and what does its page in docs/symptoms say?

export interface CauseText {
  /** The symptom in a few words; the title of its page. */
  readonly title: string
  /** One sentence; {pod}, {container}, {image}, {claim}, {volume}, {node}, {holder}, {class}, {driver}, {namespace} are filled in; a part in [brackets] is left out if one of its names is missing. */
  readonly sentence: string
  /** For the page: what happens, and why. */
  readonly meaning: string
  /** What ends the wait, or that nothing does. */
  readonly ends: string
  /** Safe commands, each with its purpose. */
  readonly hints: readonly (readonly [command: string, purpose: string])[]
}

export type CauseTable = Readonly<Record<string, CauseText>>
