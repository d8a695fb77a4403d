# frozen_string_literal: true

require "test_helper"
require "heddle/net/tls"
require "fileutils"
require "tmpdir"

# The certificate of development, which a browser has to accept once.
class SelfSignedTest < Minitest::Test
  SelfSigned = Heddle::Net::TLS::SelfSigned

  def setup
    @folder = File.realpath(Dir.mktmpdir)
    @state = ENV.fetch("XDG_STATE_HOME")
    ENV["XDG_STATE_HOME"] = File.join(@folder, "state")
  end

  def teardown
    ENV["XDG_STATE_HOME"] = @state
    FileUtils.remove_entry(@folder)
  end

  def serial(name = nil) = SelfSigned.find(name).load.certificate.serial

  def path(name = "localhost") = File.join(@folder, "state/heddle", "#{name}.pem")

  def test_certificate_is_the_same_one_at_the_next_start_and_is_the_users_alone
    first = serial

    assert_equal first, serial
    assert_equal [0o600, 0o700], [path, File.dirname(path)].map { |one| File.stat(one).mode & 0o777 }
  end

  def test_certificate_of_another_host_has_its_name_and_is_kept_beside
    certificate = SelfSigned.find("shop.example").load.certificate

    assert_includes certificate.extensions.find { |one| one.oid == "subjectAltName" }.value, "DNS:shop.example"
    refute_equal certificate.serial, serial
    assert_equal certificate.serial, serial("shop.example")
  end

  def test_certificate_that_has_expired_or_is_damaged_is_made_anew
    first = serial
    File.write(path, "nothing")
    second = serial

    refute_equal first, second
    assert_equal second, serial
    text = File.read(path)
    expired = OpenSSL::X509::Certificate.new(text)
    expired.not_after = Time.now - 1
    expired.sign(OpenSSL::PKey.read(text), "SHA256")
    File.write(path, expired.to_pem + OpenSSL::PKey.read(text).private_to_pem)

    refute_equal second, serial
  end

  def test_certificate_is_in_memory_where_nothing_can_be_written
    ENV["XDG_STATE_HOME"] = File::NULL

    refute_equal serial, serial
    refute_nil SelfSigned.find("localhost").load.key
  end

  def test_files_of_mkcert_and_of_the_gem_localhost_are_used_for_localhost
    pair = SelfSigned.new.load
    gem = File.join(@folder, "state/localhost.rb")
    write(pair, "#{gem}/localhost.crt", "#{gem}/localhost.key")

    assert_equal "#{gem}/localhost.crt", SelfSigned.find("localhost").to_s
    assert_kind_of SelfSigned, SelfSigned.find("shop.example")
    Dir.chdir(@folder) do
      write(pair, "localhost+2.pem", "localhost+2-key.pem")

      assert_equal "#{@folder}/localhost+2.pem", SelfSigned.find("127.0.0.1").to_s
      File.write("localhost+2-key.pem", "nothing")

      assert_equal "#{gem}/localhost.crt", SelfSigned.find(nil).to_s
    end
  end

  private

  def write(pair, certificate, key)
    FileUtils.mkdir_p(File.dirname(certificate))
    File.write(certificate, pair.certificate.to_pem)
    File.write(key, pair.key.private_to_pem)
  end
end
