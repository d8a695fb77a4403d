# frozen_string_literal: true

# The extension's sources joined into a few files, as SQLite's are: each header is read and each compiler is started a
# few times instead of 240. Files that name something of their own alike, such as a static function, are in different
# ones.
class Amalgamation
  # Lines of a unit, so that a compiler needs little memory for it and several can run beside each other.
  LINES = 12_000

  # A file with what it names for itself, its macros, and all words in it.
  Source = Data.define(:path, :size, :names, :macros, :words) do
    # @param definitions [Hash{String => String}] macros of headers, which may declare something in a file
    def self.read(path, text, definitions = {})
      bare = text.gsub(%r{/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"}m, " ")
      macros = bare.scan(/^\s*#\s*define\s+(\w+)/).flatten
      code = bare.gsub(/^\s*#(?:\\\n|[^\n])*/, " ")
      declared = code.scan(/^([A-Z][A-Z_0-9]+)\(/).flatten.flat_map { |name| definitions[name].to_s.scan(/\w+/) }
      names = Amalgamation.names(code) | macros | declared
      new(path:, size: text.count("\n"), names:, macros:, words: bare.scan(/\w+/).uniq)
    end

    def fits?(other)
      !names.intersect?(other.names) && !macros.intersect?(other.words) && !words.intersect?(other.macros)
    end
  end

  # @param code [String] C without comments, strings and lines of the preprocessor
  # @return [Array<String>] functions, variables, types and enumerators that a file declares for itself
  def self.names(code)
    outside = code.gsub(/\{(?:[^{}]|\g<0>)*\}/, "{}")
    statics = outside.scan(/^static\b[^;{]*[;{]/).flat_map do |text|
      text.gsub(/\([^()]*\)/, "()").scan(/(\w+)\s*[(\[=;,{]/)
    end
    enumerators = code.scan(/\benum\b[^{;()]*\{([^{}]*)\}/).flat_map { |(body)| body.scan(/(?:\A|,)\s*(\w+)/) }
    tags = code.scan(/\b(?:struct|union|enum)\s+(\w+)\s*\{/)
    (statics + enumerators + tags + outside.scan(/\}\s*(\w+)\s*[;\[=]/)).flatten.uniq
  end

  # @param folder [String] of the sources
  def initialize(folder)
    @folder = folder
  end

  # @return [Hash{String => String}] names of C files and their contents
  def files
    units.each_with_index.to_h { |paths, index| ["unit_#{index}.c", join(paths)] }
  end

  # @return [Array<Array<String>>] the paths of each unit
  def units
    headers = Dir.glob("**/*.h", base: @folder).map { |path| read(path) }.join
    definitions = headers.scan(/^#define (\w+)\(((?:[^\n]*\\\n)*[^\n]*)/).to_h
    sources = Dir.glob("**/*.c", base: @folder).sort.map { |path| Source.read(path, read(path), definitions) }
    # One that speaks to the system's headers has to be the first.
    alone, others = sources.partition { |source| read(source.path).match?(/^#define [^#]*^#include/m) }
    # Those without Ruby never see its headers, whose names are short.
    groups = others.partition { |source| ruby?(source.path) }.flat_map do |group|
      group.each_with_object([]) { |source, all| place(source, all) }
    end
    (groups + alone.zip).map { |unit| unit.map(&:path) }
  end

  private

  def place(source, units)
    unit = units.find do |others|
      others.sum(&:size) + source.size <= LINES && others.all? { |other| other.fits?(source) }
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

  def join(paths)
    seen = []
    paths.map { |path| expand(path, seen) }.join
  end

  # With the headers that it includes in their places. One inside of a condition may have to come again, and is guarded.
  def expand(path, seen, conditional: false)
    depth = 0
    lines = read(path).lines.reject { |line| line.start_with?("#pragma once") }.map.with_index(1) do |line, number|
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
