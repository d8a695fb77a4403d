# frozen_string_literal: true

# The extension's sources joined into a few files, as SQLite's are: each header is read and each compiler is started a
# few times instead of 240. Where two files of a unit name something of their own alike, such as a static function, the
# later one's gets the file's name as a suffix. Where a macro of a header gives that name, the files are in different
# units.
class Amalgamation
  # Lines of a unit, so that a compiler needs little memory for it and several can run beside each other.
  LINES = 16_000

  # A file with what it names for itself, its macros, and the names that macros give.
  Source = Data.define(:path, :size, :names, :macros, :given) do
    # @param definitions [Hash{String => Array<String>}] macros of headers: parameters and text
    def self.read(path, text, definitions = {})
      bare = Amalgamation.bare(text)
      definitions = definitions.merge(Amalgamation.definitions(text))
      macros = bare.scan(/^\s*#\s*define\s+(\w+)/).flatten
      code = bare.gsub(/^\s*#(?:\\\n|[^\n])*/, " ")
      calls = code.scan(/^([A-Z][A-Z_0-9]+)\(([^;{]*?)\)/)
      declared = Amalgamation.names(calls.map { |name, values| "#{expand(values, *definitions[name])};" }.join("\n"))
      listed = bare.scan(/^\s*X\((\w+)/).flatten
      given = declared - calls.flat_map { |_, values| values.scan(/\w+/) } | listed
      new(path:, size: text.count("\n"), names: Amalgamation.names(code) | declared | listed, macros:, given:)
    end

    def self.expand(values, parameters = "", text = "")
      pairs = parameters.split(/\s*,\s*/).zip(values.split(/\s*,\s*/)).to_h
      text.gsub(/\\$/, "").gsub(/\w+/) { |word| pairs[word] || word }.gsub(/\s*##\s*/, "").gsub(/(?=\bstatic\b)/, "\n")
    end

    # @return [Array<String>] names that the others have, too
    def clashes(others) = names & others.flat_map(&:names)
  end

  # @return [Hash{String => Array<String>}] parameters and text by the macro's name
  def self.definitions(text)
    text.scan(/^#define (\w+)\(([^)]*)\)((?:[^\n]*\\\n)*[^\n]*)/).to_h { |name, *rest| [name, rest] }
  end

  # @return [String] C without comments and strings
  def self.bare(text) = text.gsub(%r{/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"}m, " ")

  # @param code [String] C without comments, strings and lines of the preprocessor
  # @return [Array<String>] functions, variables, types and enumerators that a file declares for itself
  def self.names(code)
    outside = code.gsub(/\{(?:[^{}]|\g<0>)*\}/, "{}")
    statics = outside.scan(/^(?:NORETURN\()?(static\b[^;{]*[;{])/).flat_map do |(text)|
      text.gsub(/\((?:[^()]|\g<0>)*\)/, "()").gsub(/=[^,;{]*/, "=").scan(/(\w+)\s*[(\[=;,{]/)
    end
    enumerators = code.scan(/\benum\b[^{;()]*\{([^{}]*)\}/).flat_map { |(body)| body.scan(/(?:\A|,)\s*(\w+)/) }
    tags = code.scan(/\b(?:struct|union|enum)\s+(\w+)\s*\{/)
    (statics + enumerators + tags + outside.scan(/\}\s*(\w+)\s*[;\[=]/)).flatten.uniq - ["struct"]
  end

  # @param folder [String] of the sources
  def initialize(folder)
    @folder = folder
  end

  # @return [Hash{String => String}] names of C files and their contents
  def files
    arrange.each_with_index.to_h { |sources, index| ["unit_#{index}.c", join(sources)] }
  end

  # @return [Array<Array<String>>] the paths of each unit
  def units = arrange.map { |unit| unit.map(&:path) }

  private

  def arrange
    headers = Dir.glob("**/*.h", base: @folder).map { |path| read(path) }.join
    @header_words = Amalgamation.bare(headers).scan(/\w+/).to_set
    definitions = Amalgamation.definitions(headers)
    sources = Dir.glob("**/*.c", base: @folder).sort.map { |path| Source.read(path, read(path), definitions) }
    # One that speaks to the system's headers has to be the first.
    alone, others = sources.partition { |source| read(source.path).match?(/^#define [^#]*^#include/m) }
    # Those without Ruby never see its headers, whose names are short.
    groups = others.partition { |source| ruby?(source.path) }.flat_map do |group|
      group.each_with_object([]) { |source, all| place(source, all) }
    end
    groups + alone.zip
  end

  def place(source, units)
    unit = units.find do |others|
      others.sum(&:size) + source.size <= LINES && !source.clashes(others).intersect?(source.given)
    end
    unit ? unit << source : units << [source]
  end

  def ruby?(path, seen = [])
    text = read(path)
    text.match?(/^\s*#\s*include [<"]ruby/) || text.scan(/^\s*#\s*include "([^"]+)"/).flatten.any? do |header|
      header = find(header, path)
      !seen.include?(header) && ruby?(header, seen << header)
    end
  end

  def join(sources)
    seen = []
    sources.each_with_index.map do |source, index|
      text = rename(read(source.path), source.clashes(sources.first(index)), File.basename(source.path, ".c"))
      expand(source.path, seen, text:) + source.macros.map { |name| "#undef #{name}\n" }.join
    end.join
  end

  # Not the members of structures that are declared in headers.
  def rename(text, names, suffix)
    names.reduce(text) do |renamed, name|
      member = @header_words.include?(name) ? "(?<![\\w.])(?<!->)" : "(?<!\\w)"
      renamed.gsub(%r{^\s*#\s*include[^\n]*|/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|#{member}#{name}(?!\w)}m) do |word|
        word == name ? "#{name}_of_#{suffix}" : word
      end
    end
  end

  # With the headers that it includes in their places. One inside of a condition may have to come again, and is guarded.
  def expand(path, seen, conditional: false, text: read(path))
    depth = 0
    lines = text.lines.reject { |line| line.start_with?("#pragma once") }.map.with_index(1) do |line, number|
      depth += 1 if line.match?(/^\s*#\s*if/)
      depth -= 1 if line.match?(/^\s*#\s*endif/)
      header = line[/^\s*#\s*include "([^"]+)"/, 1] or next line
      "#{include_header(header, path, seen, conditional || depth.positive?)}#line #{number + 1} \"#{path}\"\n"
    end
    "#line 1 \"#{path}\"\n#{lines.join}"
  end

  def include_header(header, from, seen, conditional)
    path = find(header, from)
    return if seen.include?(path)

    seen << path unless conditional
    guard = "HEDDLE_UNIT_#{path.upcase.gsub(/\W/, "_")}"
    text = expand(path, conditional ? seen.dup : seen, conditional:)
    "#ifndef #{guard}\n#define #{guard}\n#{without_comments(text)}#endif\n"
  end

  # A header comes with each unit. Its lines keep no numbers; the lines of the C file after it do.
  def without_comments(text)
    text.gsub(%r{/\*.*?\*/}m, " ").lines.reject { |line| line.strip.empty? }.join
  end

  def find(header, from)
    [header, File.join(File.dirname(from), header)].find { |one| File.file?(File.join(@folder, one)) } or
      raise ArgumentError, "#{from} includes #{header}, which does not exist"
  end

  def read(path) = File.read(File.join(@folder, path))
end

if $PROGRAM_NAME == __FILE__
  Amalgamation.new(ARGV[0]).files.each { |name, text| File.write(File.join(ARGV[1], name), text) }
end
