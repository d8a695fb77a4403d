# frozen_string_literal: true

module Heddle
  class Server
    # Switches to the user that the server runs as once its sockets are open. So root can open ports below 1024 and read
    # keys, and the application runs without root's rights.
    module User
      # Does nothing if the process already runs as that user, like the new master of a restart.
      # @param configuration [Configuration]
      # @return [void]
      # @raise [BootError]
      def self.become(configuration)
        name, group = configuration.user&.split(":", 2)
        return unless name

        account = Etc.getpwnam(name)
        gid = group ? Etc.getgrnam(group).gid : account.gid
        return if Process.euid == account.uid && Process.egid == gid
        raise BootError, "can't become the user #{configuration.user}: only root can" unless Process.euid.zero?

        give(configuration.log_file, account.uid, gid) if configuration.log_file
        Process.initgroups(name, gid)
        Process::GID.change_privilege(gid)
        Process::UID.change_privilege(account.uid)
        Native::Processes.allow_inspection
        ENV.update("HOME" => account.dir, "USER" => name, "LOGNAME" => name)
        check_log(configuration.log_file) if configuration.log_file
      rescue ArgumentError
        raise BootError, "can't become the user #{configuration.user}: there is no such user or group"
      rescue SystemCallError => e
        raise BootError, "can't become the user #{configuration.user}: #{e.message.sub(/ @ .*/, "")}. Root needs the " \
                         "capabilities SETGID and SETUID for it."
      end

      # Changes a file's owner to the user, but does not follow a link that the user may have put in its place. Where
      # that fails, the user may still be allowed to open the file.
      def self.give(path, uid, gid)
        ::File.open(path, ::File::RDONLY | ::File::NOFOLLOW | ::File::NONBLOCK) do |file|
          file.chown(uid, gid) if file.stat.file? && file.stat.nlink == 1
        end
      rescue SystemCallError
        nil
      end
      private_class_method :give

      # At a restart the new master opens the log, and after a rename every process does. A link, such as /dev/stdout,
      # may lead to what only root may open.
      def self.check_log(path) = ::File.symlink?(path) || Log::File.new(path).close
      private_class_method :check_log
    end
  end
end
