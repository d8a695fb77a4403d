# frozen_string_literal: true

require "digest"

module Heddle
  class Server
    class Control
      # Where a control socket is: a path, or a host and a port.
      class Address
        TCP = %r{\A(?:tcp:)?(?://)?(\[[^\]]+\]|[^:\[\]/]+):(\d+)\z}
        UNIX = %r{\Aunix:(?://)?(.+)\z}
        private_constant :TCP, :UNIX

        class << self
          # @param words [Array<String>, nil] as the user named them; nil: none; empty: no control at all
          # @return [Array<Address>] starting with the default path, if no other one is named
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

          # A server and the commands that the same user gives in its folder find the same path.
          # @param folder [String]
          # @return [String] `tmp/heddle-control.sock` where there is a folder `tmp` that not all users may write to,
          #   else a path of this user's own; an abstract name where no folder can be written to
          def default_path(folder = Dir.pwd)
            path = File.join(folder, "tmp", "heddle-control.sock")
            return path if path.bytesize <= 107 && File.writable?(File.dirname(path)) && owner_of(File.dirname(path))

            "#{own_folder || "\0heddle-#{Process.euid}"}/#{Digest::SHA256.hexdigest(folder)[0, 16]}.sock"
          end

          # @param folder [String]
          # @return [Integer, nil] the user that controls the folder; nil: it is not a folder, or all users may make
          #   files in it
          def owner_of(folder)
            stat = File.stat(folder)
            stat.uid if stat.directory? && stat.mode.nobits?(0o002)
          rescue SystemCallError
            nil
          end

          # @return [String, nil]
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

        # @return [Boolean] whether this is the default, because the user has named no address
        def default? = @default

        # @return [Boolean] whether the path is a name that Linux keeps without a file, and without permissions
        def abstract? = path&.start_with?("\0")

        # @param taking_over [Boolean] whether this server will take the path over from another one
        # @return [Array<Listener>] `localhost` may be two addresses
        # @raise [BootError]
        def open(taking_over: false)
          return open_tcp unless path
          return [Listener.new(UNIXServer.new(path), to_s, nil, own_user: true)] if abstract?

          make_own_folder if File.dirname(path) == self.class.own_folder
          remove_socket if taking_over
          bind = UnixBind.new(path, 0o600) # only this user may open it, from its creation on
          [bind.adopt(bind.listen, path)]
        rescue Errno::EADDRINUSE
          raise BootError, "another server answers at #{self}, or a file is there: stop the server, remove the " \
                           "file, or name another path with --control"
        rescue SystemCallError, ArgumentError => e
          raise BootError, "can't listen for commands on #{self}: #{e.message.sub(/ (?:-|@) .*/, "")}. " \
                           "Name another address with --control, or --control off"
        end

        # @param uid [Integer] of the process that answers at {#path}
        # @return [Boolean] whether to send it commands and show its answers: it is this user, or the owner of the
        #   socket's folder (when root controls the server of an application's user)
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

        # In a folder for temporary files that all users share, another user may have made a folder of this name.
        def make_own_folder
          folder = self.class.own_folder
          Dir.mkdir(folder, 0o700)
        rescue Errno::EEXIST
          stat = File.lstat(folder)
          return if stat.directory? && stat.owned? && stat.mode.nobits?(0o077)

          raise BootError, "the control socket can't be in #{folder}: that must be a folder of this user's own with " \
                           "the mode 0700. Remove the folder, or name a path with --control"
        end

        # The other server may end at this moment, and remove the file itself.
        def remove_socket
          File.unlink(path)
        rescue Errno::ENOENT
          nil
        end
      end
    end
  end
end
