#!/usr/bin/env bash
# The pool's server is a named with a configuration of its own; the distribution's named is left as it is.

function install_designate_pool_server {
    if ! is_ubuntu; then
        die $LINENO "DESIGNATE_POOL_BACKEND=bind9 knows the folders of Debian and Ubuntu only; take secondary"
    fi
    install_package bind9
}

# configure_designate_pool_server SECTION TRANSFER_SECRET - The key of the control channel, named.conf, and the options of the driver.
function configure_designate_pool_server {
    local rndc_secret listen=listen-on listen_not=listen-on-v6
    rndc_secret=$(_designate_pool_new_secret)
    if [[ $DESIGNATE_POOL_HOST == *:* ]]; then
        listen=listen-on-v6 listen_not=listen-on
    fi
    _designate_pool_bind_key rndc-key "$rndc_secret" | _designate_pool_private rndc.key
    iniset "$DESIGNATE_POOL_CONF" "$1" rndc_host 127.0.0.1
    iniset "$DESIGNATE_POOL_CONF" "$1" rndc_port "$DESIGNATE_POOL_CONTROL_PORT"
    iniset "$DESIGNATE_POOL_CONF" "$1" rndc_key_file "$DESIGNATE_POOL_CONF_DIR/rndc.key"
    iniset "$DESIGNATE_POOL_CONF" "$1" zone_file_folder "$DESIGNATE_POOL_BIND_VAR_DIR/designate-pool"

    sudo install -d -m 750 -g "$DESIGNATE_POOL_BIND_USER" "$DESIGNATE_POOL_BIND_CONF_DIR"
    sudo install -m 640 -g "$DESIGNATE_POOL_BIND_USER" /dev/null "$DESIGNATE_POOL_BIND_CONF_DIR/named.conf"
    # AppArmor's profile of named lets it lock its list of added zones in this one directory.
    sudo tee "$DESIGNATE_POOL_BIND_CONF_DIR/named.conf" > /dev/null <<CONFIGURATION
$(_designate_pool_bind_key rndc-key "$rndc_secret")
$(_designate_pool_bind_key transfer.designate-pool "$2")
options {
    directory "$DESIGNATE_POOL_BIND_VAR_DIR";
    managed-keys-directory "$DESIGNATE_POOL_BIND_VAR_DIR/designate-pool";
    pid-file none;
    lock-file none;
    session-keyfile none;
    $listen port $DESIGNATE_POOL_DNS_PORT { $DESIGNATE_POOL_HOST; };
    $listen_not { none; };
    allow-new-zones yes;
    recursion no;
    notify no;
    dnssec-validation no;
    serial-query-rate 1000;
    transfers-in 100;
    transfers-per-ns 100;
};
controls { inet 127.0.0.1 port $DESIGNATE_POOL_CONTROL_PORT allow { 127.0.0.1; } keys { "rndc-key"; }; };
CONFIGURATION
}

function init_designate_pool_server {
    cleanup_designate_pool_zones
    sudo install -d -m 750 -o "$DESIGNATE_POOL_BIND_USER" "$DESIGNATE_POOL_BIND_VAR_DIR/designate-pool"
}

function start_designate_pool_server {
    # systemd starts it as root, since it is named that gives that up.
    run_process designate-pool-server \
        "/usr/sbin/named -f -u $DESIGNATE_POOL_BIND_USER -c $DESIGNATE_POOL_BIND_CONF_DIR/named.conf" "" root
}

function cleanup_designate_pool_server {
    cleanup_designate_pool_zones
    sudo rm -rf "${DESIGNATE_POOL_BIND_CONF_DIR:?}"
}

# cleanup_designate_pool_zones - The zones and named's list of them.
function cleanup_designate_pool_zones {
    sudo rm -rf "${DESIGNATE_POOL_BIND_VAR_DIR:?}"/{designate-pool,_default.nzd,_default.nzd-lock}
}

# _designate_pool_bind_key NAME SECRET - A key statement.
function _designate_pool_bind_key {
    printf 'key "%s" {\n    algorithm hmac-sha256;\n    secret "%s";\n};\n' "$1" "$2"
}
