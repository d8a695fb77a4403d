# frozen_string_literal: true

module Heddle
  class Server
    # The path of a unix socket to listen on.
    class UnixBind
      # Maximum number of bytes of a socket's path.
      LONGEST = 107
      private_constant :LONGEST

      # @return [String] the absolute path
      attr_reader :path

      # @param path [String]
      # @param mode [Integer, nil] the permissions of the socket's file; nil: those that the umask leaves
      # @param owner [String, nil] the file's owner: `user`, `user:group` or `:group`
      # @param proxied [Boolean] whether connections of trusted proxies begin with a PROXY header
      def initialize(path, mode, owner: nil, proxied: false)
        @path = File.expand_path(path, WorkingFolder.current)
        @mode = mode
        @owner = owner
        @proxied = proxied
      end

      # @return [nil] clients of a unix socket never use TLS
      def tls = nil

      # @return [String] identifies the address across processes
      def key = "unix:#{path}"

      # @param open [Array<UNIXServer>] sockets that another process has opened for this address
      # @param _options [Hash] unused; other kinds of bind accept options
      # @return [Array<Listener>]
      # @raise [BootError]
      def open(open: [], **_options)
        return open.map { |socket| adopt(socket, path) } if open.any?

        inherited = InheritedSocket.take { |one| one.address.unix? && one.address.unix_path == path }
        return inherited.map { |one| adopt(one.io) } if inherited.any?

        [adopt(listen, path)]
      rescue ArgumentError
        raise BootError, too_long
      rescue SystemCallError => e
        raise BootError, reason(e)
      end

      # @return [UNIXServer] a new socket, whose file replaces the one that a killed server may have left
      # @raise [SystemCallError, BootError]
      # @raise [ArgumentError] when the path is too long
      def listen
        ids = owner_ids
        remove_stale
        server = make
        File.chown(*ids, path) if ids
        server.listen(Bind::BACKLOG)
        server
      end

      # Checks the path without listening on it.
      # @return [String, nil] why this process can't listen on the path; nil: no reason was found
      def problem
        owner_ids
        folder = File.dirname(path)
        if path.bytesize > LONGEST then too_long
        elsif !File.directory?(folder) then reason(Errno::ENOENT.new)
        elsif !File.writable?(folder) then reason(Errno::EACCES.new)
        elsif File.exist?(path) && !File.socket?(path) then "can't listen on unix:#{path}: the path is a file"
        end
      rescue BootError => e
        e.message
      end

      # @param io [UNIXServer] a socket that is open already
      # @param file [String, nil] the path of the file that the listener removes when it closes; nil: it removes none
      # @return [Listener]
      def adopt(io, file = nil) = Listener.new(io, "unix:#{path}", nil, file, proxied: @proxied)

      private

      # Sets the permissions by the umask, so that the file never has other permissions, not even for a moment.
      def make
        return UNIXServer.new(path) unless @mode

        before = File.umask(0o777 & ~@mode)
        begin
          UNIXServer.new(path).tap { File.chmod(@mode, path) }
        ensure
          File.umask(before)
        end
      end

      def too_long
        "can't listen on unix:#{path}: the path has #{path.bytesize} bytes; at most #{LONGEST} are allowed"
      end

      def owner_ids
        return unless @owner

        user, group = @owner.split(":", 2)
        [user.to_s.empty? ? nil : Etc.getpwnam(user).uid, group.to_s.empty? ? nil : Etc.getgrnam(group).gid]
      rescue ArgumentError
        raise BootError, "can't listen on unix:#{path}: owner=#{@owner} names a user or group that does not exist"
      end

      # Removes the file that a killed server has left. Such a file refuses connections.
      def remove_stale
        return unless File.socket?(path)

        UNIXSocket.new(path).close
        raise Errno::EADDRINUSE
      rescue Errno::ECONNREFUSED
        File.unlink(path)
      end

      def reason(error)
        folder = File.dirname(path)
        why = case error
              when Errno::EADDRINUSE then "another program has that socket, or the path is a file. Stop that " \
                                          "program, or choose another path with -b."
              when Errno::ENOENT then "the folder #{folder} does not exist. Create it, or choose another path."
              when Errno::EPERM then "only a privileged user may change the file's owner to #{@owner}."
              when Errno::EACCES then "this user may not write to #{folder}."
              else error.message
              end
        "can't listen on unix:#{path}: #{why}"
      end
    end
  end
end
