# frozen_string_literal: true

# test: once

require "test_helper"

# Code, messages and pages use the terms that docs/design.md ends with, and C functions are named verb + object. The
# lists of exceptions and of counts below may only shrink: a test fails when one of them is larger than what is there.
class LanguageTest < Minitest::Test
  # Words that were replaced, and what to write instead.
  REPLACED = {
    /\b(?:heddle_)?beats?_\w+|_beats?\b|\bbeats?;/ => "heartbeat",
    /\bheddle_\w*letter\b|\b(?:open|drop|write)_letter\b/ => "message",
    /\bLent[A-Z]\w*|@lent\b/ => "proxy, in use",
    /\bstrays\b/i => "detached tasks",
    /\bguests?\b/i => "implicit task",
    /drop_error/ => "take_errinfo",
    /\blearned endpoints?\b/ => "stall history",
    /\bload board\b|\bNet::Board\b|heddle_board/ => "scoreboard",
    /->spent\b|_spent\b/ => "preempted",
    /\b\w*errands?\b/ => "request",
    /\bdeaf\b|_deaf\b/ => "uninterruptible",
    /\bwipe[ds]?\b|heddle_wipe/ => "reset",
    /\bpreludes?\b/ => "handshake stage",
    /\b\w*untold\b/ => "pending",
    /\bturns? of the loop\b|\bloop's turns?\b|\bthe loop turns\b/ => "tick",
    /\b(?:\w+_)?(?:told|news)(?:_\w+)?\b/ => "reported, pending events, notification",
    /refusal/i => "rejection",
    /[#.@:]complaint\b|\bcomplain\(/ => "violation",
    /\blet_go\b|\bgive_back\b/ => "release",
    /\bhand_over\b|\bhands? over\b|\bhanded[ _]over\b|\bhanding over\b/ => "hand off"
  }.freeze
  # How often a file may still have one of them.
  LEFT = {}.freeze
  # Sentences of the pages that begin with Who, What or Whoever and ask nothing. Name the actor instead.
  SUBJECTS_LEFT = 0

  SOURCES = Dir.chdir(ROOT) { Dir["{ext,lib,sig,exe}/**/*.{c,h,rb,rbs}", "exe/*"].grep_v(%r{/native/}).sort }
  PAGES = Dir.chdir(ROOT) { Dir["{README,CONTRIBUTING}.md", "docs/**/*.md", "examples/**/*.md"].sort }

  def text(file) = File.read(File.join(ROOT, file))

  def test_replaced_words_are_gone
    found = (SOURCES + PAGES).to_h { |file| [file, count_replaced(text(file))] }.reject { |_, words| words.empty? }
    counts = found.transform_values(&:size)

    assert_empty found.reject { |file, words| words.size <= LEFT.fetch(file, 0) }
    assert_empty LEFT.reject { |file, left| counts[file] == left }, "there are fewer now: lower LEFT"
  end

  def count_replaced(text)
    REPLACED.flat_map { |pattern, better| text.scan(pattern).map { |word| "#{word} (write: #{better})" } }
  end

  def test_static_functions_have_a_verb_and_an_object
    found = SOURCES.grep(/\.c\z/).to_h { |file| [file, short_statics(text(file))] }.reject { |_, names| names.empty? }

    assert_empty found
  end

  def short_statics(text)
    text.scan(/^static (?:inline )?[^(;={]*?\b([a-z]\w*)\([^;{}]*\)\n\{/m).flatten.grep_v(/_/)
  end

  def test_sentences_of_the_pages_name_their_subject
    found = PAGES.flat_map do |page|
      prose = text(page).gsub(/^```.*?^```$/m, "").gsub(/^#.*$/, "")
      prose.scan(/(?<=\A|\. |\.\n|: |\n\n|\| |- |\*\* )(?:Who|What|Whoever) [^.?|]*[.?|]/)
           .reject { |sentence| sentence.end_with?("?") }.map { |sentence| "#{page}: #{sentence.tr("\n", " ")}" }
    end

    assert_operator found.size, :<=, SUBJECTS_LEFT, found.join("\n")
    assert_equal SUBJECTS_LEFT, found.size, "there are fewer now: lower SUBJECTS_LEFT"
  end

  # Nor does a clause begin so, after a colon or a semicolon.
  def test_clauses_of_the_pages_name_their_subject
    found = PAGES.flat_map do |page|
      clauses = text(page).gsub(/^```.*?^```$/m, "").scan(/[:;] (?:who|what|whoever) [^.?|]{20,}[.?|]/)
      clauses.reject { |clause| clause.end_with?("?") }.map { |clause| "#{page}: #{clause}" }
    end

    assert_empty found
  end

  # A sentence is what ends with a period, an exclamation or question mark, a paragraph, a list item or a table cell.
  # Code counts as one word.
  def test_sentences_of_the_pages_have_at_most_thirty_words
    long = PAGES.flat_map do |page|
      sentences(text(page)).select { |sentence| sentence.split.grep(/\w/).size > 30 }
                           .map { |sentence| "#{page}: #{sentence}" }
    end

    assert_empty long
  end

  def sentences(markdown)
    prose = markdown.gsub(/^```.*?^```$/m, "").gsub(/^(?:#| {4}).*$/, "").gsub(/`[^`]*`/, "code")
                    .gsub(/\]\([^)]*\)/, "]")
    prose.split(/\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )|\n(?=\|)| \| /).flat_map { |part| part.split(/(?<=[.?!])\)?\s+/) }
  end

  # No sentence in a comment begins with Who, What, Whoever or Whatever.
  def test_sentences_of_comments_name_their_subject
    found = SOURCES.flat_map do |file|
      comments(file).flat_map { |comment| comment.scan(/(?:\A|(?<=[.:] ))(?:Who|What)(?:ever)? [^.?]*[.?]?/) }
                    .reject { |sentence| sentence.end_with?("?") }.map { |sentence| "#{file}: #{sentence}" }
    end

    assert_empty found
  end

  # Nor does a clause of one begin so, after a colon or a semicolon.
  def test_clauses_of_comments_name_their_subject
    found = SOURCES.flat_map do |file|
      comments(file).flat_map { |comment| comment.scan(/[:;] (?:who|what)(?:ever)? (?!to )[^.?]{20,}[.?]?/) }
                    .reject { |clause| clause.end_with?("?") }.map { |clause| "#{file}: #{clause}" }
    end

    assert_empty found
  end

  # Comments of the code, and pages, name a thread, a fiber, a client, a user instead of somebody.
  def test_no_vague_person_is_a_subject
    vague = /\b(?:somebody|nobody|whoever|anybody)\b/i
    code = SOURCES.grep(%r{\Alib/|\.[ch]\z})
    found = code.flat_map { |file| comments(file).grep(vague).map { |text| "#{file}: #{text}" } } +
            PAGES.flat_map { |page| text(page).lines.grep(vague).map { |line| "#{page}: #{line}" } }

    assert_empty found
  end

  def comments(file)
    pattern = file.end_with?(".rb") ? /(?:^ *# .*\n)+/ : %r{/\*.*?\*/}m
    text(file).scan(pattern).map { |comment| comment.gsub(%r{^ *(?:#|/?\*)|\*/}, " ").split.join(" ") }
  end

  # RuboCop looks at Ruby alone.
  def test_lines_of_c_have_at_most_120_columns
    long = Dir["ext/heddle/**/*.{c,h}"].flat_map do |file|
      File.foreach(file, chomp: true).with_index(1).filter_map { |line, n| "#{file}:#{n}" if line.size > 120 }
    end

    assert_empty long
  end
end
