# frozen_string_literal: true

module Heddle
  module Offload
    # The shipped list of native libraries whose calls may run on any thread: the source of each was checked for that,
    # and a trial in this repository tests it. An entry begins with a prefix of the file's name. It continues with
    # prefixes of the libraries with which it was tested, except the system's and Ruby's. A library that was linked with
    # others is not known good. The extension gets this list unchanged.
    #
    # @api private
    KNOWN_GOOD = [
      "pg_ext. libpq", # pg 1.7.0 with the libpq that it brings: test/trials/databases_test.rb
      "mysql2. libmariadb", # mysql2 0.5.7 with libmariadb 3.3: test/trials/databases_test.rb
      "bcrypt_ext.", # bcrypt 3.1.22: test/trials/computing_test.rb
      "openssl. libssl.so.3 libcrypto.so.3", # openssl 3.2.0, 3.3.3 and 4.0.2 with OpenSSL 3.5: computing_test.rb
      "zlib. libz.so.1", # zlib 3.1.1 and 3.2.3 with zlib 1.2.13: test/trials/computing_test.rb
      "socket." # the one that comes with Ruby 3.3 and 3.4: test/offload/libraries_test.rb
    ].freeze
  end
end
