# frozen_string_literal: true

require "digest"

module Heddle
  module CLI
    class InitCommand
      # A configuration file that `heddle init --apply` has written. A comment in it (the mark) contains the digest of
      # the file's text and, as a Ruby string, the bytes of the file that this file replaced.
      class MadeFile
        MARK = /^# heddle:install made this: (\h{64})\n(?:# heddle:install replaced: (".*")\n)?/n
        private_constant :MARK

        # @param text [String] the text of a configuration file
        # @param former [String, nil] the bytes of the file that it replaces
        # @return [String] the text with its mark
        def self.mark(text, former)
          # If the replaced file was written by `heddle init --apply`, too, and is unchanged, keeps the file before it.
          older = MadeFile.new(former.to_s)
          former = older.former if older.unchanged?
          kept = "# heddle:install replaced: #{former.b.dump}\n" if former
          text.sub("\n\n") { "\n\n# heddle:install made this: #{Digest::SHA256.hexdigest(text)}\n#{kept}" }
        end

        # @param text [String] the file's bytes
        def initialize(text)
          @text = text.b
          @digest, @former = @text.match(MARK)&.captures
        end

        # @return [Boolean] whether the file has a mark, and so was written by `heddle init --apply`
        def made? = !@digest.nil?

        # @return [Boolean] whether the file has no changes since `heddle init --apply` wrote it
        def unchanged? = made? && Digest::SHA256.hexdigest(@text.sub(MARK, "")) == @digest

        # @return [String, nil] the bytes of the file that this file replaced; nil: it replaced no file
        def former = @former&.undump
      end
    end
  end
end
