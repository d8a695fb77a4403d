# frozen_string_literal: true

module Heddle
  class Server
    # Switches to the user of the option `user` after the sockets are open. So root can open ports below 1024 and read
    # keys, and the application runs without root's rights.
    module User
      # Does nothing if the process already runs as that user, as the new master of a restart does.
      # @param configuration [Configuration]
      # @return [void]
      # @raise [BootError]
      def self.become(configuration)
        name, group = configuration.user&.split(":", 2)
        return unless name

        account = Etc.getpwnam(name)
        gid = group ? Etc.getgrnam(group).gid : account.gid
        return if Process.euid == account.uid && Process.egid == gid
        unless Process.euid.zero?
          raise BootError, "can't become the user #{configuration.user}: only root can change its user. Start the " \
                           "server as root, or leave out the option user"
        end

        give(configuration.log_file, account.uid, gid) if configuration.log_file
        Process.initgroups(name, gid)
        Process::GID.change_privilege(gid)
        Process::UID.change_privilege(account.uid)
        Native::Processes.allow_inspection
        ENV.update("HOME" => account.dir, "USER" => name, "LOGNAME" => name)
        check_log(configuration.log_file) if configuration.log_file
      rescue ArgumentError
        raise BootError, "can't become the user #{configuration.user}: the user or the group does not exist"
      rescue SystemCallError => e
        raise BootError, "can't become the user #{configuration.user}: #{ErrorText.reason(e)}. Root needs the " \
                         "capabilities SETGID and SETUID to change its user."
      end

      # Makes the user the owner of the log file. Does not follow a link: the user may have put it there, to become the
      # owner of another file. A failure is ignored, because the user may be allowed to open the file anyway;
      # {check_log} tries to open it.
      def self.give(path, uid, gid)
        ::File.open(path, ::File::RDONLY | ::File::NOFOLLOW | ::File::NONBLOCK) do |file|
          file.chown(uid, gid) if file.stat.file? && file.stat.nlink == 1
        end
      rescue SystemCallError
        nil
      end
      private_class_method :give

      # Raises if the user may not open the log. Otherwise the error would come later: in the new master of a restart,
      # and in every process after a log rotation. A link, such as /dev/stdout, is not checked, because it may refer to
      # a file that only root may open.
      def self.check_log(path) = ::File.symlink?(path) || Log::File.new(path).close
      private_class_method :check_log
    end
  end
end
