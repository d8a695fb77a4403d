# frozen_string_literal: true

module Heddle
  module CLI
    class InitCommand
      # The lines of a file, of which `heddle init --apply` changes some. Above each changed line, a comment (the mark)
      # keeps the original line, or says that the line is new. So `--undo` works even after other edits of the file.
      #
      #     # heddle:install replaced: gem "puma", ">= 5.0"
      #     gem "heddle"
      class MarkedLines
        MARK = /\A([ \t]*)# heddle:install (replaced|added):(?: (.*?))?(\r?\n)?\z/mn
        # Matches a line that `heddle init --apply` has written below a mark.
        WRITTEN = /\bgem[ (]*["'](?:heddle|puma)["']|\bheddle(?:", ")?\s*serve\b|:heddle\b/n
        private_constant :MARK, :WRITTEN

        # @return [String] the file's bytes
        attr_reader :text

        # @param text [String] the file's bytes
        def initialize(text)
          @text = text.b
          @lines = @text.lines
          @newline = @text[/\r?\n/n] || "\n"
        end

        # @return [Array<String>] the lines without line endings
        def to_a = @lines.map { |line| line.delete_suffix("\n").delete_suffix("\r") }

        # @param numbers [Range<Integer>] indexes of the lines to replace, counted from 0
        # @param text [String] the line that replaces them
        # @return [void]
        def replace(numbers, text)
          old = @lines[numbers]
          marks = old.map { |line| line.sub(/\A[ \t]*/n) { |indent| "#{indent}# heddle:install replaced: " } }
          ending = old.last[/\r?\n\z/n].to_s
          marks[-1] += @newline if ending.empty?
          # Empty entries replace the removed lines, so that the indexes of other lines stay valid.
          @lines[numbers] = [marks.join + text.b + ending, *[""] * (old.size - 1)]
          @text = @lines.join
        end

        # @param text [String] the line to add at the end of the file
        # @return [void]
        def append(text)
          mark = "# heddle:install added:#{@newline}#{text}".b
          @text = @text.empty? || @text.end_with?("\n") ? "#{@text}#{mark}#{@newline}" : "#{@text}#{@newline}#{mark}"
          @lines = @text.lines
        end

        # @return [String] the file's bytes with the original lines restored; all other edits are kept
        def restore
          lines = @lines.dup
          found = []
          while (line = lines.shift)
            indent, kind, old, ending = line.match(MARK)&.captures
            next found << line unless kind

            found << "#{indent}#{old}#{ending}" if kind == "replaced"
            next if MARK.match?(lines.first.to_s) && kind == "replaced" && lines.first[MARK, 2] == "replaced"

            # Drops the line that was written below the mark, unless a user has removed or changed that line.
            next unless lines.first&.match?(WRITTEN)

            its_ending = lines.shift[/\r?\n\z/n].to_s
            found[-1] = found[-1].chomp + its_ending if found.any? && its_ending.empty?
          end
          found.join
        end
      end
    end
  end
end
