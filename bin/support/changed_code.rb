# frozen_string_literal: true

require "open3"
require "prism"

# Which files have other code than a commit. Comments are not code.
class ChangedCode
  C_LITERAL_OR_COMMENT = %r{"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|/\*.*?\*/|//[^\n]*}m
  # Comments that Ruby or bin/test reads.
  READ_BY_PROGRAMS = /\A#\s*(?:-\*-|frozen_string_literal:|shareable_constant_value:|(?:en)?coding[:=]|test:)/
  private_constant :C_LITERAL_OR_COMMENT, :READ_BY_PROGRAMS

  class << self
    # @param path [String] its extension names the language; only C and Ruby lose their comments
    # @return [String] the content without comments. C also loses indentation and blank lines: its strings end with the
    #   line.
    def code_of(path, content)
      case path
      when /\.[ch]\z/
        squeeze(content.gsub(C_LITERAL_OR_COMMENT) { |found| found.start_with?("/") ? " " : found })
      when /\.rb\z/ then without_comments(content)
      else content
      end
    end

    # @return [String] without indentation and blank lines
    def squeeze(code) = code.gsub(/\s*\n\s*/, "\n").lstrip

    private

    # One with nothing else on its line takes the line along.
    def without_comments(content)
      bytes = content.b
      Prism.parse_comments(content).reverse_each do |comment|
        text = comment.location.slice.chomp
        bytes[comment.location.start_offset, text.bytesize] = "\0" unless text.match?(READ_BY_PROGRAMS)
      end
      bytes.gsub(/^[ \t]*\0(?:\n|\z)|[ \t]*\0/, "")
    end
  end

  # @param root [String] the checkout
  def initialize(root)
    @root = root
    @since = {}
  end

  # @param commit [String]
  # @return [Array<String>, nil] files that have changed, come or gone, relative to the root; nil if git does not know
  #   the commit
  def since(commit)
    @since.fetch(commit) { @since[commit] = find(commit) }
  end

  private

  def find(commit)
    changed = git("diff", "--name-only", "-z", "--no-renames", commit, "--") or return
    added = git("ls-files", "--others", "--exclude-standard", "-z")
    changed.split("\0").select { |file| differs?(commit, file) } | added.split("\0")
  end

  def differs?(commit, file)
    path = File.join(@root, file)
    before = git("show", "#{commit}:#{file}")
    return true unless before && File.file?(path)

    self.class.code_of(file, before) != self.class.code_of(file, File.binread(path))
  end

  def git(*arguments)
    output, status = Open3.capture2("git", *arguments, chdir: @root, err: File::NULL, binmode: true)
    output if status.success?
  end
end
