# frozen_string_literal: true

module Heddle
  module Net
    class Resolver
      # Where host names are looked up, in which order: the `hosts` line of nsswitch.conf(5). Frozen.
      #
      # Heddle reads the hosts file and DNS itself. Any other source is a library that only libc can call. From the
      # first such source that may know the name, libc does the lookup, also in the sources after it.
      #
      # @api private
      class NameSources
        OURS = { "files" => :files, "dns" => :dns }.freeze

        # nss-mdns answers for .local alone unless mdns.allow says otherwise.
        MDNS = /\Amdns[46]?(?:_minimal)?\z/
        # The names that systemd's nss-myhostname adds to localhost, beside the machine's own.
        SYNTHETIC = %w[_gateway _outbound].freeze

        # libc's own default where nothing is configured.
        def self.usual = new(%w[files dns])

        def self.libc_only = new(%w[libc])

        # @param text [String] contents of nsswitch.conf
        # @return [NameSources]
        def self.parse(text)
          line = text.each_line.map { |one| one.sub(/#.*/m, "") }.reverse.find { |one| one.match?(/\A\s*hosts\s*:/) }
          return usual unless line

          words = line.split(":", 2).last.scan(/\[[^\]]*\]|[^\s\[]+/)
          # An action after our own sources changes the meaning of "not found" there. That is rare, and libc handles it.
          return libc_only if words.each_cons(2).any? { |word, action| OURS.key?(word) && action.start_with?("[") }

          new(words.reject { |word| word.start_with?("[") })
        end

        def initialize(words)
          @words = words.map(&:freeze).freeze
          freeze
        end

        # @param name [String] in lower case
        # @return [Array<Symbol>] :files, :dns, :system in order; :system is always the last
        def plan(name)
          plan = []
          @words.each do |word|
            if OURS.key?(word)
              plan << OURS[word]
            elsif concerns?(word, name)
              return plan << :system
            end
          end
          plan
        end

        private

        def concerns?(source, name)
          case source
          when MDNS then name.end_with?(".local")
          when "myhostname" then SYNTHETIC.include?(name) || name == Socket.gethostname.b.downcase
          else true
          end
        end
      end
    end
  end
end
