# frozen_string_literal: true

require "digest"

module Heddle
  class Server
    class Control
      # The address of a control socket: a path, or a host and a port.
      class Address
        TCP = %r{\A(?:tcp:)?(?://)?(\[[^\]]+\]|[^:\[\]/]+):(\d+)\z}
        UNIX = %r{\Aunix:(?://)?(.+)\z}
        private_constant :TCP, :UNIX

        class << self
          # @param words [Array<String>, nil] the values of the option `control`; nil: it is not set; empty: it is `off`
          # @return [Array<Address>] the addresses; if none of the values is a path, the default path is the first one
          # @raise [ConfigurationError]
          def all(words)
            return [] if words && words.empty?

            named = (words || []).map { |word| parse(word) }
            named.any?(&:path) ? named : [new(path: default_path, default: true), *named]
          end

          # @param word [String]
          # @return [Address]
          # @raise [ConfigurationError]
          def parse(word)
            if (unix = UNIX.match(word)) then new(path: File.expand_path(unix[1], WorkingFolder.current))
            elsif (tcp = TCP.match(word)) && tcp[2].to_i <= 65_535 then new(host: tcp[1].delete("[]"),
                                                                            port: tcp[2].to_i)
            else
              raise ConfigurationError, "--control must be unix:path, tcp://host:port or off, but is #{word.inspect}"
            end
          end

          # The default path of a server that was started in this folder. Commands of the same user in the same folder
          # find it.
          # @param folder [String]
          # @return [String] `tmp/heddle-control.sock` below the folder, if this path is short enough for a socket, this
          #   user may write to `tmp`, and `tmp` is not world-writable. Otherwise a path in this user's own folder among
          #   the temporary files. If no folder is writable, an abstract name (a name of a socket without a file).
          def default_path(folder = Dir.pwd)
            path = File.join(folder, "tmp", "heddle-control.sock")
            return path if path.bytesize <= 107 && File.writable?(File.dirname(path)) && owner_of(File.dirname(path))

            "#{own_folder || "\0heddle-#{Process.euid}"}/#{Digest::SHA256.hexdigest(folder)[0, 16]}.sock"
          end

          # @param folder [String]
          # @return [Integer, nil] the folder's owner; nil: it is not a folder, or all users may create files in it
          def owner_of(folder)
            stat = File.stat(folder)
            stat.uid if stat.directory? && stat.mode.nobits?(0o002)
          rescue SystemCallError
            nil
          end

          # @return [String, nil] the folder of this user for its control sockets; nil: there is no folder for temporary
          #   files
          def own_folder = TemporaryFolder.find&.then { |folder| File.join(folder, "heddle-#{Process.euid}") }
        end

        # @return [String, nil]
        attr_reader :path
        # @return [String, nil]
        attr_reader :host
        # @return [Integer, nil]
        attr_reader :port

        def initialize(path: nil, host: nil, port: nil, default: false)
          @path = path
          @host = host
          @port = port
          @default = default
        end

        # @return [Boolean] whether this is the default address, because the user has set none
        def default? = @default

        # @return [Boolean] whether the path is an abstract name, for which Linux has no file and no permissions
        def abstract? = path&.start_with?("\0")

        # @param taking_over [Boolean] whether this server takes the path over from another one
        # @return [Array<Listener>] several, if the host has several addresses, as `localhost` may have
        # @raise [BootError]
        def open(taking_over: false)
          return open_tcp unless path
          return [Listener.new(UNIXServer.new(path), to_s, nil, own_user: true)] if abstract?

          make_own_folder if File.dirname(path) == self.class.own_folder
          remove_socket if taking_over
          bind = UnixBind.new(path, 0o600) # from its creation on, only this user may open it
          [bind.adopt(bind.listen, path)]
        rescue Errno::EADDRINUSE
          raise BootError, "can't listen for commands on #{self}: another server uses it, or another file is in its " \
                           "place. Stop that server, remove the file, or set another path with --control"
        rescue SystemCallError, ArgumentError => e
          raise BootError, "can't listen for commands on #{self}: #{ErrorText.reason(e)}. " \
                           "Set another address with --control, or use --control off"
        end

        # @param uid [Integer] the user of the process that listens on {#path}
        # @return [Boolean] whether a command may be sent to that process. That process must belong to the current user
        #   or to the owner of the socket's folder. The second case lets root control servers of other users.
        def trusts?(uid) = uid == Process.euid || (!abstract? && uid == self.class.owner_of(File.dirname(path)))

        # @return [String]
        def to_s
          if path
            "unix:#{path.sub("\0", "@")}"
          else
            "tcp://#{host.include?(":") ? "[#{host}]" : host}:#{port}"
          end
        end

        private

        def open_tcp = TCPBind.new(host, port).open

        # Creates this user's folder among the temporary files. Another user may have created a folder of this name,
        # because all users may write there.
        def make_own_folder
          folder = self.class.own_folder
          Dir.mkdir(folder, 0o700)
        rescue Errno::EEXIST
          stat = File.lstat(folder)
          return if stat.directory? && stat.owned? && stat.mode.nobits?(0o077)

          raise BootError, "the control socket can't be in #{folder}: that folder must belong to this user, with the " \
                           "permissions 0700. Remove the folder, or set a path with --control"
        end

        # The other server may stop at this moment and remove the file itself.
        def remove_socket
          File.unlink(path)
        rescue Errno::ENOENT
          nil
        end
      end
    end
  end
end
