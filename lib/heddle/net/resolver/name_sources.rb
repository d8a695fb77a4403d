# frozen_string_literal: true

module Heddle
  module Net
    class Resolver
      # The sources of host names and their order, from the `hosts` line of nsswitch.conf(5). Frozen.
      #
      # Heddle itself uses the hosts file and DNS. Every other source is a library that only libc can call. When the
      # next source is such a library and may have the name, libc does the lookup, in all sources.
      #
      # @api private
      class NameSources
        OURS = { "files" => :files, "dns" => :dns }.freeze

        # nss-mdns resolves only names in .local, unless mdns.allow lists others.
        MDNS = /\Amdns[46]?(?:_minimal)?\z/
        # Names that systemd's nss-myhostname resolves, in addition to localhost and the machine's own name.
        SYNTHETIC = %w[_gateway _outbound].freeze

        # libc's default if nothing is configured.
        def self.usual = new(%w[files dns])

        def self.libc_only = new(%w[libc])

        # @param text [String] contents of nsswitch.conf
        # @return [NameSources]
        def self.parse(text)
          line = text.each_line.map { |one| one.sub(/#.*/m, "") }.reverse.find { |one| one.match?(/\A\s*hosts\s*:/) }
          return usual unless line

          words = line.split(":", 2).last.scan(/\[[^\]]*\]|[^\s\[]+/)
          # An action such as [NOTFOUND=return] after `files` or `dns` is rare, so all lookups are left to libc.
          return libc_only if words.each_cons(2).any? { |word, action| OURS.key?(word) && action.start_with?("[") }

          new(words.reject { |word| word.start_with?("[") })
        end

        def initialize(words)
          @words = words.map(&:freeze).freeze
          freeze
        end

        # @param name [String] in lower case
        # @return [Array<Symbol>] some of :files, :dns and :system (libc), in the order to use; nothing follows :system
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
