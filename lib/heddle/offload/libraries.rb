# frozen_string_literal: true

module Heddle
  # Lists of native libraries.
  module Offload
    # Libraries whose calls may run on any thread. The source of each was checked, and a trial in this repository tests
    # it. An entry begins with a prefix of the library's file name. The further prefixes are those of the libraries with
    # which it was linked in the test, except libraries of the system and of Ruby. A build that is linked with any
    # further library does not match the entry. The C extension gets this list unchanged.
    #
    # @api private
    KNOWN_GOOD = [
      "pg_ext. libpq", # pg 1.7.0 with its bundled libpq: test/trials/databases_test.rb
      "mysql2. libmariadb", # mysql2 0.5.7 with libmariadb 3.3: test/trials/databases_test.rb
      "bcrypt_ext.", # bcrypt 3.1.22: test/trials/computing_test.rb
      "openssl. libssl.so.3 libcrypto.so.3", # openssl 3.2.0, 3.3.3 and 4.0.2 with OpenSSL 3.5: computing_test.rb
      "zlib. libz.so.1", # zlib 3.1.1 and 3.2.3 with zlib 1.2.13: test/trials/computing_test.rb
      "socket." # the version in Ruby 3.3 and 3.4: test/offload/libraries_test.rb
    ].freeze

    # Prefixes of the file names of libraries that no option can allow. Some have functions that must always be called
    # on the same thread, some run their own event loops, and ffi keeps a list of its calls per thread.
    DENIED = %w[
      cuda libcuda pycall rjbcore rugged IO_Event nio4r_ext glib2 gtk3 gtk4 opengl glfw sdl2 ruby-sdl qt qml ffi_c.
      lmdb_ext
    ].freeze

    # Libraries that only compute and never wait for another fiber. Each of their functions runs in place as long as
    # its calls are quick.
    QUICK = %w[zlib.].freeze

    # Libraries whose blocking calls of libc are offloaded, too, although the libraries keep the GVL.
    LIBC = %w[libpq].freeze

    # Libraries that no option can add to LIBC, because they wait while they hold locks that belong to a thread.
    NEVER_LIBC = %w[sqlite3 libsqlite3].freeze

    private_constant :DENIED, :QUICK, :LIBC, :NEVER_LIBC
  end
end
