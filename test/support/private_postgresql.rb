# frozen_string_literal: true

require "concurrency/support/private_server"
require "digest"
require "etc"
require "fileutils"
require "open3"

# A PostgreSQL for tests: Debian's, with its data in a temporary folder, on a unix socket.
class PrivatePostgresql < PrivateServer
  USER = "heddle"
  TEMPLATES = File.expand_path("../../tmp/postgresql", __dir__)
  private_constant :TEMPLATES

  class << self
    # @return [String, nil] where `postgres` and `initdb` are; Debian keeps them out of PATH, by version
    def programs
      folders = ENV.fetch("PATH", "").split(File::PATH_SEPARATOR) + Dir["/usr/lib/postgresql/*/bin"].reverse
      folders.find { |folder| %w[postgres initdb].all? { |name| File.executable?(File.join(folder, name)) } }
    end

    # @return [Array<String>] what makes a command one of another user: PostgreSQL refuses to run as root
    def unprivileged
      Process.uid.zero? ? %w[setpriv --reuid=postgres --regid=postgres --clear-groups] : []
    end

    # @return [PrivatePostgresql] one for all tests of this process, stopped after the last one
    def shared
      @shared ||= new.tap { |server| Minitest.after_run { server.stop } }
    end
  end

  # @param settings [Hash{String => Object}] of its configuration
  def initialize(settings = {})
    programs = self.class.programs
    super(".s.PGSQL.5432") do |folder|
      make(File.join(programs, "initdb"), folder)
      options = { "listen_addresses" => "", "fsync" => "off", **settings }
      [*unprivileged, File.join(programs, "postgres"), "-D", File.join(folder, "data"), "-k", folder,
       *options.flat_map { |name, value| ["-c", "#{name}=#{value}"] }]
    end
    wait_until_it_accepts
  end

  # @param database [String]
  # @return [String]
  def url(database = "postgres") = "postgresql:///#{database}?host=#{folder}&user=#{USER}"

  # @return [PG::Connection]
  def connect(user = USER) = PG.connect(host: folder, dbname: "postgres", user:)

  # Ends the connections of an application.
  # @param application [String]
  # @return [void]
  def cut_connections(application)
    pg = connect
    pg.exec_params("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1", [application])
    pg.close
  end

  def restart
    super
    wait_until_it_accepts
  end

  private

  # An immediate shutdown: KILL would leave shared memory behind.
  def crash_signal = :QUIT

  # Its socket is there before it is.
  def wait_until_it_accepts
    deadline = now + PATIENCE
    begin
      connect.close
    rescue PG::ConnectionBad
      raise if now > deadline

      sleep 0.02
      retry
    end
  end

  def unprivileged = self.class.unprivileged

  # Copies the data of a new server, which takes a tenth of the time of making them. They are made once.
  def make(initdb, folder)
    File.chown(Etc.getpwnam("postgres").uid, nil, folder) if Process.uid.zero?
    version = Digest::SHA256.hexdigest([initdb, File.mtime(initdb).to_i, Process.uid].join(" "))[0, 8]
    template = File.join(TEMPLATES, version)
    FileUtils.mkdir_p(TEMPLATES)
    File.open("#{template}.lock", File::CREAT | File::RDWR) do |lock|
      lock.flock(File::LOCK_EX)
      File.directory?(template) || make_template(initdb, folder, template)
    end
    copy(template, File.join(folder, "data"))
  end

  def make_template(initdb, folder, template)
    fresh = File.join(folder, "new")
    output, status = Open3.capture2e(*unprivileged, initdb, "-D", fresh, "-U", USER, "-A", "trust", "--no-sync",
                                     chdir: folder)
    raise output unless status.success?

    copy(fresh, "#{template}.new")
    FileUtils.rm_rf(fresh)
    File.rename("#{template}.new", template)
  end

  # With its owner, who is another one when root runs the tests.
  def copy(from, to) = system("cp", "-a", from, to, exception: true)
end
