# frozen_string_literal: true

# test: once

require "test_helper"
require "heddle/cli"
require "heddle/options"
require "prism"

# What users read has plain words and short sentences: the pages, the texts of options and commands, and the messages of
# the code. Comments, names and tests are left to their readers.
class LanguageTest < Minitest::Test
  # Words of Heddle's own, and what to write instead.
  WORDS = {
    /(?<!there )(?<!There )\bis no (?!longer|more|less|other|such)/ => "is not a",
    /\bfor ever\b/ => "forever",
    /\bsigns? of life\b/ => "heartbeat",
    /\btells? of\b/ => "report, describe",
    /\b(?:somebody|nobody|whoever|anybody)\b/i => "name the actor",
    /\bload boards?\b/ => "scoreboard",
    /\blearned endpoints?\b/ => "stall history",
    /\bstrays\b/ => "detached tasks",
    /\blent exchanges?\b/ => "exchange proxy",
    /\bpreludes?\b/ => "handshake stage",
    /\berrands?\b/ => "request",
    /\bturns? of the loop\b|\bloop's turns?\b/ => "tick",
    /\bhand(?:s|ed|ing)? over\b/ => "hand off",
    /\blet go\b|\bgiven? back\b/ => "release"
  }.freeze

  PAGES = Dir.chdir(ROOT) { Dir["{README,CONTRIBUTING}.md", "docs/**/*.md", "examples/**/*.md"].sort }

  # Collects the texts of string literals; what is interpolated counts as one word.
  class Literals < Prism::Visitor
    attr_reader :texts

    def initialize
      super
      @texts = []
    end

    def visit_string_node(node) = @texts << node.unescaped

    def visit_interpolated_string_node(node)
      @texts << node.parts.map { |part| part.is_a?(Prism::StringNode) ? part.unescaped : "x" }.join
      super
    end
  end

  def text(file) = File.read(File.join(ROOT, file), encoding: "UTF-8")

  def test_pages_have_plain_words
    assert_empty(PAGES.flat_map { |page| odd_words(page, text(page).gsub(/^```.*?^```$/m, "")) })
  end

  def test_texts_of_options_and_commands_have_plain_words
    texts = Heddle::Options::ALL.to_h { |option| [option.flag, "#{option.text}. #{option.details}"] }
    texts.update(Heddle::CLI::COMMANDS.transform_values(&:text))

    assert_empty(texts.flat_map { |name, words| odd_words(name, words) })
  end

  def test_messages_of_the_code_have_plain_words
    files = Dir.chdir(ROOT) { Dir["{lib,ext}/**/*.{rb,c,h}"].sort }

    assert_empty(files.flat_map { |file| messages(file).flat_map { |message| odd_words(file, message) } })
  end

  # String literals of three words or more.
  def messages(file)
    texts = file.end_with?(".rb") ? ruby_literals(text(file)) : c_literals(text(file))
    texts.map(&:scrub).grep(/\S +\S+ +\S/)
  end

  def ruby_literals(source) = Literals.new.tap { |literals| Prism.parse(source).value.accept(literals) }.texts

  def c_literals(source)
    source.gsub(%r{/\*.*?\*/}m, "").scan(/(?:"(?:\\.|[^"\\\n])*"[\sA-Z]*)+/).map { |literal| literal.gsub(/"\s*"/, "") }
  end

  def odd_words(where, words)
    WORDS.filter_map do |pattern, better|
      "#{where}: write #{better} in …#{words[[Regexp.last_match.begin(0) - 60, 0].max, 120]}…" if words =~ pattern
    end
  end

  def test_sentences_of_the_pages_name_their_subject
    found = PAGES.flat_map do |page|
      prose = text(page).gsub(/^```.*?^```$/m, "").gsub(/^#.*$/, "")
      prose.scan(/(?<=\A|\. |\.\n|: |\n\n|\| |- |\*\* )(?:Who|What|Whoever) [^.?|]*[.?|]/)
           .reject { |sentence| sentence.end_with?("?") }.map { |sentence| "#{page}: #{sentence.tr("\n", " ")}" }
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
end
