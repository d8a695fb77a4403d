# frozen_string_literal: true

module Heddle
  class Server
    # Reports the service's state to systemd (sd_notify(3)), over the datagram socket whose path is in NOTIFY_SOCKET.
    # Without that variable it does nothing. A message that can't be sent is dropped, because a service must not fail
    # only because systemd does not listen.
    class SystemdNotify
      # The share of systemd's watchdog timeout that passes between two notifications.
      WATCHDOG_SHARE = 0.5
      # Seconds between two checks whether the service is stopping.
      POLL_INTERVAL = 0.5
      private_constant :WATCHDOG_SHARE, :POLL_INTERVAL

      # @param environment [Hash{String => String}] the environment variables. A new master that the old one starts must
      #   not inherit WATCHDOG_PID, which contains the process ID of the old one
      # @param pid [Integer] compared with WATCHDOG_PID
      def initialize(environment = ENV, pid: Process.pid)
        @path = environment["NOTIFY_SOCKET"]
        usec = environment["WATCHDOG_USEC"]
        watched = environment["WATCHDOG_PID"]
        @watchdog = usec.to_i / 1e6 if usec && usec.to_i > 0 && (watched.nil? || watched.to_i == pid)
      end

      # @return [Boolean] whether systemd has passed a socket
      def enabled? = !@path.nil?

      # @return [Float, nil] maximum seconds between two watchdog notifications, half of systemd's timeout; nil: there
      #   is no watchdog
      def interval = @watchdog && enabled? ? @watchdog * WATCHDOG_SHARE : nil

      # Reports that the service accepts requests.
      # @param status [String] a line for `systemctl status`
      # @return [Boolean] whether the message was sent
      def ready(status = "serving") = send_lines("READY=1", "STATUS=#{line(status)}")

      # Reports that the service is stopping.
      # @return [Boolean]
      def stopping = send_lines("STOPPING=1", "STATUS=stopping")

      # Reports that workers are being replaced. The caller must call {#ready} afterwards.
      # @return [Boolean]
      def reloading
        microseconds = Process.clock_gettime(Process::CLOCK_MONOTONIC, :microsecond)
        send_lines("RELOADING=1", "MONOTONIC_USEC=#{microseconds}", "STATUS=reloading")
      end

      # Sends the watchdog notification.
      # @return [Boolean]
      def watchdog = send_lines("WATCHDOG=1")

      # Reports that the service is ready. Then starts a task that sends the watchdog notifications and reports the
      # stop. The task runs in the loop, so that a blocked loop sends no watchdog notification.
      # @param status [String]
      # @yieldreturn [Boolean] whether the service is stopping
      # @return [Task, nil] nil: systemd has not passed a socket
      def attend(status)
        return unless enabled?

        ready(status)
        Heddle.async(name: "systemd", background: true) do
          announced = false
          loop do
            sleep([interval, POLL_INTERVAL].compact.min)
            watchdog if interval
            announced ||= stopping if yield
          end
        end
      end

      # Reports the process ID of the service's new main process.
      # @param pid [Integer]
      # @return [Boolean]
      def main_pid(pid) = send_lines("MAINPID=#{Integer(pid)}")

      private

      def line(text) = PrintableText.utf8(text).gsub(/[[:cntrl:]]/, " ")

      def send_lines(*lines)
        return false unless @path

        # An abstract address begins with a zero byte. The variable has `@` in its place.
        Addrinfo.unix(@path.sub(/\A@/, "\0"), :DGRAM).connect do |socket|
          socket.send("#{lines.join("\n")}\n", Socket::MSG_DONTWAIT | Socket::MSG_NOSIGNAL)
        end
        true
      rescue SystemCallError, ArgumentError
        false
      end
    end
  end
end
